#include "tools/halflab/show/show.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tools/halflab/command.h"
#include "tools/halflab/formats.h"
#include "tools/halflab/show/report.h"

namespace halflab::show {
namespace {

struct Options {
  std::vector<std::string> words;
  std::string format = "binary16";
};

/// Whether a word with a dash in front is a number or an operator and not an option.
bool is_negative_operand(std::string_view word) {
  if (!word.starts_with('-') || word == "-h") return false;
  if (word.size() == 1) return true;
  word.remove_prefix(1);
  const bool is_number = (word[0] >= '0' && word[0] <= '9') || word[0] == '.';
  const bool is_call = word.find('(') != std::string_view::npos;
  constexpr std::array<std::string_view, 3> names{"inf", "nan", "snan"};
  return is_number || is_call ||
         std::ranges::any_of(names, [&](std::string_view name) { return word.starts_with(name); });
}

/// The words with a blank before numbers such as -1.5, which the option parser would take for options.
std::vector<std::string> without_false_options(int argc, const char* const* argv) {
  std::vector<std::string> words(argv, argv + argc);
  for (std::string& word : words)
    if (is_negative_operand(word)) word.insert(0, 1, ' ');
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text = fmt::format("{}", fmt::join(words, " "));
  text.erase(0, text.find_first_not_of(' '));
  return text;
}

bool wants_colors(const std::ostream& out) {
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return &out == &std::cout && ::isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

std::vector<std::string> all_fields(const Findings& found) {
  std::vector<std::string> fields{found.result.fields};
  for (const Part& part : found.operands) fields.push_back(part.number.fields);
  for (const auto& neighbour : {found.below, found.above})
    if (neighbour) fields.push_back(neighbour->fields);
  return fields;
}

}  // namespace

int run(int argc, const char* const* argv, experiments::Streams streams) {
  Options options;
  std::optional<Findings> found;
  const std::vector<std::string> words = without_false_options(argc, argv);
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());

  std::ostringstream plain;
  const bool has_colors = wants_colors(streams.out);
  const int exit_code = run_command(
      argc, arguments.data(),
      {.program =
           {.name = "halflab show",
            .question = "What is this number, bit by bit, and what becomes of this operation?",
            .example = "halflab show '2048+1' --format binary16",
            .outputs = outputs(),
            .details =
                "0x3c00 is a code of the format, 0x1.8p-3 and 2^-24 are values. Expressions have + - * "
                "/ and parentheses, and " +
                calls() +
                "; every operation is rounded to the format, to nearest even, and the last one is shown in "
                "all roundings. Bits are coloured on a terminal unless NO_COLOR is set: sign, exponent, "
                "significand."},
       .options =
           [&](experiments::CommandLine& command_line) {
             command_line.add_words("VALUE|0xCODE|EXPRESSION", options.words,
                                    "a number, a code, or operations on such, in quotes");
             command_line.add("--format", options.format,
                              fmt::format("what it is rounded to: {}, as numpy, PyTorch and safetensors call "
                                          "them, too",
                                          scalar_format_names()),
                              "FORMAT");
           },
       .body =
           [&](experiments::Run& run) {
             const fp16::NamedFormat& format = experiments::from_option(
                 "--format", [&]() -> auto& { return scalar_format(options.format); });
             found = measure(joined(options.words), format);
             report(run, *found);
           }},
      {.out = has_colors ? plain : streams.out, .err = streams.err});
  if (has_colors) {
    streams.out << (found ? colored(plain.str(), *found->format, all_fields(*found)) : plain.str())
                << std::flush;
  }
  return exit_code;
}

}  // namespace halflab::show
