/// Which answers did the runs give? One self-contained page from their directories, or a site of linked ones.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/frame/command_line.h"
#include "experiments/frame/printable.h"
#include "experiments/frame/whole_file.h"
#include "experiments/report/page.h"
#include "experiments/report/site.h"
#include "experiments/training/laboratory.h"

namespace {

namespace report = experiments::report;

struct Options {
  std::string out = "results/report.html";
  std::string title = "Halflab report";
  bool site = false;
  std::string notebooks;
  std::vector<std::string> run_directories;
};

void create_parent_directories(const std::filesystem::path& file) {
  std::error_code error;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
  if (error) {
    throw std::runtime_error(fmt::format("--out: directory '{}' cannot be created ({})",
                                         file.parent_path().string(), error.message()));
  }
}

/// Whether the file lies in a run of its own below that directory, as the cells of a sweep are.
bool is_in_a_run_below(const std::filesystem::path& directory, const std::filesystem::path& file) {
  bool found = false;
  for (std::filesystem::path inner = file.parent_path(); inner != directory; inner = inner.parent_path()) {
    if (inner == inner.parent_path()) return false;  // the root: it does not lie below the directory
    found = found || std::filesystem::exists(inner / "manifest.json");
  }
  return found;
}

/// A page in the place of a run's own file would be the end of that run.
void require_none_of_the_runs_files(const std::filesystem::path& out,
                                    const std::vector<report::RunDirectory>& runs) {
  const std::filesystem::path page = std::filesystem::weakly_canonical(out);
  for (const report::RunDirectory& run : runs) {
    if (is_in_a_run_below(std::filesystem::weakly_canonical(run.path), page))
      throw std::invalid_argument(fmt::format("--out: '{}' lies in a run within '{}'; must lie elsewhere",
                                              out.string(), run.path.string()));
    for (const std::string& file : run.files) {
      if (page == std::filesystem::weakly_canonical(run.path / file))
        throw std::invalid_argument(
            fmt::format("--out: '{}' is a file of the run itself; must be another", out.string()));
    }
  }
}

std::vector<std::filesystem::path> pages_in(const std::string& directory) {
  std::vector<std::filesystem::path> pages;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() == ".html") pages.push_back(entry.path());
  }
  if (pages.empty()) {
    throw std::runtime_error(fmt::format("--notebooks: '{}' must be a directory with HTML files", directory));
  }
  std::ranges::sort(pages);
  return pages;
}

int write_report(int argc, char** argv) {
  Options options;
  experiments::CommandLine command_line({
      .name = "report",
      .question =
          "HTML from the directories of finished runs: verdicts, figures, what was run. One page that "
          "holds everything, or with --site an index and a page for each run.",
      .example = "report --out results/report.html results/gradient_histogram results/scaler_comparison",
  });
  command_line.add_words("RUN_DIR", options.run_directories, "directories that experiments wrote");
  command_line.add("--out", options.out, "the page; of a site, its index", "FILE.html");
  command_line.add("--title", options.title, "its title", "TEXT");
  command_line.add_flag("--site", options.site, "write pages beside the index, linked to the runs' files");
  command_line.add("--notebooks", options.notebooks,
                   "a folder of notebooks exported as HTML, linked by a site", "DIR");
  if (command_line.parse(argc, argv, std::cout) == experiments::CommandLine::Outcome::answered) return 0;
  if (!options.notebooks.empty() && !options.site)
    throw std::invalid_argument("--notebooks: only a site links notebooks; give --site too");

  std::vector<std::filesystem::path> notebooks;
  if (!options.notebooks.empty()) notebooks = pages_in(options.notebooks);
  std::vector<report::RunDirectory> runs;
  for (const std::string& directory : options.run_directories) runs.push_back(report::read_run(directory));
  require_none_of_the_runs_files(options.out, runs);
  if (options.site) {
    create_parent_directories(options.out);
    report::write_site({.index = options.out, .title = options.title, .runs = runs, .notebooks = notebooks});
  } else {
    const std::string page = report::report_page(options.title, runs);
    create_parent_directories(options.out);
    experiments::write_file(options.out, page);
  }
  for (const report::RunDirectory& run : runs) {
    std::cout << experiments::printable(fmt::format("{}: {}\n\n", run.directory, report::headline(run)));
  }
  std::cout << experiments::printable(fmt::format("Report: {}\n", options.out));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return experiments::guarded("report", std::cerr, [&] { return write_report(argc, argv); });
}
