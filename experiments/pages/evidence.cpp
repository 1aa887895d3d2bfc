#include "experiments/pages/evidence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <stdexcept>

#include "experiments/frame/toml_file.h"
#include "experiments/pages/toml_rows.h"

namespace experiments::pages {
namespace {

namespace fs = std::filesystem;

constexpr const char* file_name = "evidence.toml";

EvidenceFile read_file(const fs::path& file) {
  const toml::table table = read_toml_file(file.string());
  const auto text = [&](std::string_view key) {
    const auto value = table.get_as<std::string>(key);
    if (value == nullptr)
      throw std::runtime_error(fmt::format("{}: '{}' must be a text", file.string(), key));
    return value->get();
  };
  EvidenceFile evidence{.title = text("title"), .place = text("place"), .rows = {}};
  for (const Row& row : rows_of(table, "row", file, {"what", "over", "against", "tests", "when", "needs"})) {
    evidence.rows.push_back({.what = row.text("what"),
                             .over = row.text("over"),
                             .against = row.text("against"),
                             .tests = row.texts("tests"),
                             .when = row.text("when"),
                             .needs = row.text_or_nothing("needs")});
    if (evidence.rows.back().tests.empty()) throw std::runtime_error(row.name() + ": must name a test");
  }
  return evidence;
}

std::string program_of(std::string_view test) {
  return std::string(test.substr(0, test.find(':')));
}

/// The words of a list such as "quick, exhaustive".
std::set<std::string> words_of(const std::string& list) {
  std::istringstream stream(list);
  std::set<std::string> words;
  for (std::string word; stream >> word;) {
    if (word.ends_with(',')) word.pop_back();
    words.insert(word);
  }
  return words;
}

/// What ctest calls all tests of a program that was not built.
bool is_unbuilt(const KnownTest& test, std::string_view program) {
  return test.name.starts_with(fmt::format("{}_NOT_BUILT", program));
}

}  // namespace

std::vector<EvidenceFile> read_evidence(const fs::path& tests) {
  std::vector<EvidenceFile> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(tests)) {
    if (entry.path().filename() == file_name) files.push_back(read_file(entry.path()));
  }
  std::ranges::sort(files, {}, &EvidenceFile::place);
  return files;
}

std::string evidence_text(const std::vector<EvidenceFile>& files) {
  std::string text;
  for (const EvidenceFile& file : files) {
    text += fmt::format("{}## {}\n\n| what | over | held against | when | tests |\n|---|---|---|---|---|\n",
                        text.empty() ? "" : "\n", file.title);
    for (const EvidenceRow& row : file.rows) {
      const std::string when = row.needs.empty() ? row.when : fmt::format("{}, with {}", row.when, row.needs);
      text += fmt::format("| {} | {} | {} | {} | `{}` |\n", row.what, row.over, row.against, when,
                          fmt::join(row.tests, "`, `"));
    }
  }
  return text;
}

bool is_checkable(const EvidenceRow& row, const std::vector<KnownTest>& tests) {
  return std::ranges::all_of(row.tests, [&](const std::string& name) {
    const std::string program = program_of(name);
    const bool is_known = std::ranges::any_of(tests, [&](const KnownTest& test) {
      return program_of(test.name) == program && !is_unbuilt(test, program);
    });
    const bool is_left_out =
        std::ranges::any_of(tests, [&](const KnownTest& test) { return is_unbuilt(test, program); });
    return is_known || (!is_left_out && row.needs.empty());
  });
}

std::string evidence_problem(const EvidenceRow& row, const std::vector<KnownTest>& tests) {
  if (!is_checkable(row, tests)) return "";
  std::set<std::string> labels;
  for (const std::string& name : row.tests) {
    bool found = false;
    for (const KnownTest& test : tests) {
      if (::fnmatch(name.c_str(), test.name.c_str(), FNM_NOESCAPE) != 0) continue;
      found = true;
      labels.insert(test.labels.begin(), test.labels.end());
    }
    if (!found) return fmt::format("'{}': no test is named '{}'", row.what, name);
  }
  const std::set<std::string> promised = words_of(row.when);
  if (labels != promised)
    return fmt::format("'{}': its tests are {}, not {}", row.what, fmt::join(labels, ", "), row.when);
  return "";
}

}  // namespace experiments::pages
