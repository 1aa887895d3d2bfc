#include "tools/halflab/run/run.h"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <ostream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "experiments/frame/installation.h"
#include "fp16/names.h"
#include "tools/halflab/shell_word.h"

namespace halflab::run_experiment {
namespace {

namespace fs = std::filesystem;

/// Programs of the folder but this one and those that validate_cpu starts on a processor; a library may lie beside.
std::vector<std::string> experiments_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    const bool is_experiment =
        name != "halflab" && !name.starts_with("validate_cpu_") && entry.path().extension().empty();
    if (is_experiment && entry.is_regular_file() && ::access(entry.path().c_str(), X_OK) == 0)
      names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

struct Answer {
  std::string text;
  bool started;
};

/// The first sentence of its help, or of what came instead.
Answer question_of(const fs::path& program) {
  FILE* const pipe = ::popen((shell_word(program.string()) + " --help 2>&1").c_str(), "r");
  if (pipe == nullptr) return {std::strerror(errno), false};
  std::array<char, 1024> piece;
  std::string help;
  while (std::fgets(piece.data(), piece.size(), pipe) != nullptr) help += piece.data();
  const bool started = ::pclose(pipe) == 0;
  std::string text = help.substr(0, help.find("\n\n"));
  std::ranges::replace(text, '\n', ' ');
  const std::size_t question = text.find('?'), sentence = text.find(". ");
  return {text.substr(0, std::min({question, sentence, text.size()}) + 1), started};
}

/// Returns whether all of them start.
bool print_list(std::ostream& out, const fs::path& folder, const std::vector<std::string>& names) {
  out << "Experiments (halflab run NAME --help tells more):\n";
  bool all = true;
  for (const std::string& name : names) {
    const Answer answer = question_of(folder / name);
    fmt::print(out, "  {:<22} {}{}\n", name, answer.started ? "" : "does not start: ", answer.text);
    all = all && answer.started;
  }
  return all;
}

void print_help(std::ostream& out) {
  out << "Which experiment answers my question?\nUsage: halflab run [NAME [OPTIONS]]\n\nRuns an experiment "
         "with its "
         "options; without a name it lists all.\n\nOptions:\n  -h,--help               print this and exit\n"
         "  --list                  print the names alone and exit\n\nExample:\n"
         "  halflab run underflow_sweep --quick\n";
}

}  // namespace

int run(int argc, const char* const* argv, experiments::Streams streams) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "--help" || name == "-h") {
    print_help(streams.out);
    return 0;
  }
  const fs::path folder = experiments::experiments_folder();
  const std::vector<std::string> names = experiments_in(folder);
  if (name.empty()) return print_list(streams.out, folder, names) ? 0 : 1;
  if (name == "--list") {
    for (const std::string& each : names) fmt::print(streams.out, "{}\n", each);
    return 0;
  }
  if (std::ranges::find(names, name) == names.end()) names::throw_unknown_name("experiment", name, names);
  const std::string program = (folder / name).string();
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (int i = 2; i <= argc; ++i) words.push_back(const_cast<char*>(argv[i]));  // the last is null
  ::execv(program.c_str(), words.data());
  throw std::runtime_error(
      fmt::format("{} cannot be started ({})", program, std::system_category().message(errno)));
}

}  // namespace halflab::run_experiment
