/// What do README.md and docs/ say of the records? Written from them, so that no figure is typed by hand.

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "experiments/frame/command_line.h"
#include "experiments/frame/experiment.h"
#include "experiments/frame/printable.h"
#include "experiments/pages/pages.h"
#include "experiments/pages/records.h"

namespace experiments::pages {
namespace {

int run(int argc, char** argv) {
  std::string checkout = ".";
  std::vector<std::string> kept;
  CommandLine command_line(
      {.name = "pages",
       .question = "Writes README.md and docs/ of a checkout from the records in it, after taking finished "
                   "runs over into these: their summary and figures, under the names of their directories.",
       .example = "pages --checkout . results/ssd"});
  command_line.add("--checkout", checkout, "the checkout", "DIR");
  command_line.add_words("RUN_DIR", kept, "finished runs to be kept as records", 0);
  if (command_line.parse(argc, argv, std::cout) == CommandLine::Outcome::answered) return 0;

  const Records records(records_folder(checkout));
  for (const std::string& directory : kept) keep(directory, records);
  for (const std::filesystem::path& page : write_pages(checkout))
    std::cout << printable(fmt::format("written: {}\n", page.string()));
  return 0;
}

}  // namespace
}  // namespace experiments::pages

int main(int argc, char** argv) {
  return experiments::guarded("pages", std::cerr, [&] { return experiments::pages::run(argc, argv); });
}
