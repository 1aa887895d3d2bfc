#pragma once
/// Linked pages from run directories: an index of questions and answers, and a page for each run. Nothing is
/// loaded but the files beside them, so that the folder can be moved, printed and read without a network.

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/report/run_directory.h"

namespace experiments::report {

struct Site {
  std::filesystem::path index;  ///< the pages of the runs lie beside it, as NAME.html
  std::string title;
  std::vector<RunDirectory> runs;
  std::vector<std::filesystem::path> notebooks;  ///< HTML files, as NN_question.html
};

/// Throws std::runtime_error when two runs have the same last name, a run is named as the index is, or a page
/// cannot be written.
void write_site(const Site& site);

}  // namespace experiments::report
