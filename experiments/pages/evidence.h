#pragma once
/// What was proven: rows of the files `evidence.toml` beside the tests, shown as tables.

#include <filesystem>
#include <string>
#include <vector>

namespace experiments::pages {

struct EvidenceRow {
  std::string what;                ///< is right
  std::string over;                ///< which inputs
  std::string against;             ///< what it is held to
  std::vector<std::string> tests;  ///< their names in ctest, which may have * in them
  std::string when;                ///< the tests' labels: "quick", "exhaustive", "quick, exhaustive", "gpu"
  std::string needs;               ///< "nvcc" or "Python", without which there are no such tests; or empty
};

struct EvidenceFile {
  std::string title;
  std::string place;  ///< its rank on the page
  std::vector<EvidenceRow> rows;
};

/// All files of that name in the directory and below it, by their places. Throws std::runtime_error, naming
/// file, row and key, where one is not as it must be.
std::vector<EvidenceFile> read_evidence(const std::filesystem::path& tests);

/// Markdown.
std::string evidence_text(const std::vector<EvidenceFile>& files);

/// A test as ctest knows it.
struct KnownTest {
  std::string name;
  std::vector<std::string> labels;
};

/// What is wrong with a row, given all tests of a build: a name that no test has, or labels that are not
/// those of `when`. Empty where nothing is; where one of its test programs was not built, or is not there
/// for want of what the row needs, this cannot be told, and nothing is returned either.
std::string evidence_problem(const EvidenceRow& row, const std::vector<KnownTest>& tests);

/// Whether the row's tests can be looked for in a build with these tests.
bool is_checkable(const EvidenceRow& row, const std::vector<KnownTest>& tests);

}  // namespace experiments::pages
