/// Which answers did the runs give? One self-contained page from their directories.

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "experiments/common/command_line.h"
#include "experiments/common/experiment.h"
#include "experiments/common/report_page.h"
#include "sim/record.h"

namespace {

struct Options {
  std::string out = "results/report.html";
  std::string title = "Halflab report";
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

int write_report(int argc, char** argv) {
  Options options;
  experiments::CommandLine command_line({
      .name = "report",
      .question = "One self-contained HTML page from the directories of finished runs: verdicts, figures, "
                  "what was run.",
      .example = "report --out results/report.html results/gradient_histogram results/scaler_comparison",
  });
  command_line.add_words("RUN_DIR", options.run_directories, "directories that experiments wrote");
  command_line.add("--out", options.out, "the page", "FILE.html");
  command_line.add("--title", options.title, "its title", "TEXT");
  if (command_line.parse(argc, argv, std::cout) == experiments::CommandLine::Outcome::answered) return 0;

  std::vector<experiments::ReportRun> runs;
  for (const std::string& directory : options.run_directories)
    runs.push_back(experiments::read_run(directory));
  const std::string page = experiments::report_page(options.title, runs);
  create_parent_directories(options.out);
  sim::write_file(options.out, page);
  for (const experiments::ReportRun& run : runs) {
    std::cout << fmt::format("{}: {}\n\n", run.directory, experiments::headline(run));
  }
  std::cout << fmt::format("Report: {}\n", options.out);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return experiments::guarded("report", std::cerr, [&] { return write_report(argc, argv); });
}
