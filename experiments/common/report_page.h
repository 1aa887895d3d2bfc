#pragma once
/// One HTML page from run directories, with everything inside it: no script, no file, no address is loaded.

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace experiments {

/// What the page shows of one run directory.
struct ReportRun {
  using Facts = std::vector<std::pair<std::string, std::string>>;

  struct Figure {
    std::string title;
    std::string caption;
    std::string svg;     ///< empty when gnuplot was missing or failed
    std::string script;  ///< name of the .gp file that draws it
  };

  std::string directory;  ///< its last name, by which runs of one experiment are told apart
  std::string name;       ///< of the experiment
  std::string question;
  std::string verdict;
  std::vector<Figure> figures;
  Facts options;
  Facts circumstances;  ///< build, machine, date, duration
  Facts summary;
};

/// Throws std::runtime_error, naming the directory and file, unless it is what an experiment wrote.
ReportRun read_run(const std::filesystem::path& directory);

/// The first paragraph of the run's verdict, on one line.
std::string headline(const ReportRun& run);

/// The `<svg>` element of an SVG file, for a page with several of them: without prolog, gnuplot's own title
/// and description; ids that something refers to begin with `prefix`, in reference and definition, the others
/// are dropped. Throws std::runtime_error when there is no such element.
std::string inline_svg(std::string_view file, std::string_view prefix, std::string_view label);

/// A section for each run, its verdict before its figures; then, folded, what was run.
std::string report_page(std::string_view title, const std::vector<ReportRun>& runs);

}  // namespace experiments
