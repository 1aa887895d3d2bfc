/// Which instructions were held to the software half on which processor? The table of docs/validate.md.

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>

#include "experiments/cpu/cpu_status/status.h"
#include "experiments/frame/command_line.h"
#include "experiments/frame/experiment.h"
#include "experiments/frame/files.h"
#include "experiments/frame/installation.h"
#include "experiments/frame/whole_file.h"

namespace experiments::cpu_status {
namespace {

int run(int argc, char** argv) {
  std::string records = shared_data("records"), page;
  CommandLine command_line({.name = "cpu_status",
                            .question =
                                "Which instructions were held to the software half on which processor? "
                                "It prints the table of docs/validate.md",
                            .example = "cpu_status --records experiments/records --page docs/validate.md"});
  command_line.add("--records", records, "the folder of the committed records", "DIR");
  command_line.add("--page", page, "writes the table between the marks of this file", "FILE");
  if (command_line.parse(argc, argv, std::cout) == CommandLine::Outcome::answered) return 0;
  const std::string table = status_table(records);
  if (!page.empty()) {
    const std::optional<std::string> text = contents_of(page);
    if (!text) throw std::runtime_error(fmt::format("--page: file '{}' cannot be read", page));
    write_file(page, from_option("--page", [&] { return with_table(*text, table); }));
  }
  std::cout << table;
  return 0;
}

}  // namespace
}  // namespace experiments::cpu_status

int main(int argc, char** argv) {
  using namespace experiments;
  return guarded("cpu_status", std::cerr, [&] { return cpu_status::run(argc, argv); });
}
