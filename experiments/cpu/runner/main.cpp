/// Does this processor's half arithmetic give the bits that it should? A program without any library beside it.

#include <algorithm>
#include <charconv>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "experiments/cpu/instructions/family.h"
#include "experiments/cpu/instructions/shard_trials.h"
#include "experiments/cpu/runner/runner.h"

namespace experiments::validate_cpu {
namespace {

constexpr std::string_view help =
    R"(Does this processor's half arithmetic give the bits, and raise the exceptions, that it should?

Every instruction in every mode is a row, held to the exact result rounded once as the processor's manual says.

  --rows TEXT     only rows whose name or group holds the text, such as fadd or comparison
  --samples N     inputs of a row, rounded up to shards of 65536; all pairs are 4294967296 (default: {usual})
  --quick         {quick} of them
  --threads N     (default: one for each processor)
  --out FILE      writes what was found, for validate_cpu --from FILE, which makes a record of it
  --emulated-by NAME
                  for an emulator that calls itself a processor, as Bochs does: every row then says so
  --list          prints the rows
  --help

Example: )";

/// The help, with its numbers.
std::string help_text() {
  std::string text(help);
  for (const auto& [name, number] :
       {std::pair("{usual}", usual_samples), std::pair("{quick}", quick_samples)})
    text.replace(text.find(name), std::string_view(name).size(), std::to_string(number));
  return text;
}

template <typename Number>
Number number_of(std::string_view option, std::string_view text, Number least, Number most) {
  Number number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size() || number < least || number > most)
    throw std::runtime_error(std::string(option) + ": '" + std::string(text) + "' is not allowed; allowed: " +
                             std::to_string(least) + " to " + std::to_string(most));
  return number;
}

void print_list() {
  for (const Family& family : families()) {
    if (family.processor != this_processor()) continue;
    for (const Instruction& row : family.instructions())
      std::cout << row.name << "  (" << row.group << ", " << row.domain->meaning << ")\n";
  }
}

int run(int argc, char** argv) {
  RunnerOptions options{.threads = std::max(1U, std::thread::hardware_concurrency())};
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    const auto value = [&] {
      if (i + 1 == argc) throw std::runtime_error(std::string(option) + ": needs a value");
      return std::string_view(argv[++i]);
    };
    if (option == "--help") {
      std::cout << help_text() << argv[0] << " --rows fadd --out fadd.txt\n";
      return 0;
    }
    if (option == "--list") {
      print_list();
      return 0;
    }
    if (option == "--serve") return serve(number_of(option, value(), 0, 1 << 20));
    if (option == "--rows") {
      options.rows = value();
    } else if (option == "--samples") {
      options.samples = number_of<std::uint64_t>(option, value(), 1, most_samples);
    } else if (option == "--quick") {
      options.samples = quick_samples;
    } else if (option == "--threads") {
      options.threads = number_of(option, value(), 1U, 4096U);
    } else if (option == "--emulated-by") {
      options.emulator = value();
    } else if (option == "--out") {
      options.out = value();
    } else {
      throw std::runtime_error(std::string(option) + ": is no option; --help shows them");
    }
  }
  return validate_alone(options);
}

}  // namespace
}  // namespace experiments::validate_cpu

int main(int argc, char** argv) {
  try {
    return experiments::validate_cpu::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << '\n';
    return 2;
  }
}
