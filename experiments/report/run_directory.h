#pragma once
/// What a report shows of a directory that an experiment wrote.

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace experiments::report {

struct RunDirectory {
  using Facts = std::vector<std::pair<std::string, std::string>>;

  struct Figure {
    std::string title;
    std::string caption;
    std::string svg;     ///< empty when gnuplot was missing or failed
    std::string script;  ///< name of the .gp file that draws it
  };

  std::filesystem::path path;
  std::string directory;  ///< its last name, by which runs of one experiment are told apart
  std::string name;       ///< of the experiment
  std::string question;
  std::string verdict;
  std::vector<Figure> figures;
  Facts options;
  Facts circumstances;  ///< build, machine, date, duration
  Facts summary;
  std::vector<std::string> files;  ///< all that the manifest lists, manifest.json itself first
};

/// Throws std::runtime_error, naming the directory and file, unless it is what an experiment wrote.
RunDirectory read_run(const std::filesystem::path& directory);

/// What stands between empty lines, without the final line feed of each.
std::vector<std::string_view> paragraphs_of(std::string_view text);

/// The first paragraph of the run's verdict that is no table, on one line.
std::string headline(const RunDirectory& run);

}  // namespace experiments::report
