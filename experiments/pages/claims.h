#pragma once
/// What the literature claims and what the records say of it: rows of `claims.toml`, shown as a table and a
/// section for each.

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/pages/records.h"

namespace experiments::pages {

struct Claim {
  std::string name;                  ///< the title of its section
  std::string claim;                 ///< in the words of its source, shortened
  std::string source;                ///< where it is made
  std::vector<std::string> records;  ///< that answer it; none where it was not tried
  std::string command;               ///< what would answer it, where there is no record
  std::string files;                 ///< the figure and the table to look at
  std::string finding;               ///< a text with placeholders (figures_in_text.h)
  std::string verdict;               ///< a person's judgement, in a few words
  std::vector<std::string> holds;    ///< conditions without which the verdict would be another
};

/// The rows of a file. Throws std::runtime_error, naming row and key, where one is not as it must be: a
/// name given twice, neither records nor a command, or both.
std::vector<Claim> read_claims(const std::filesystem::path& file);

/// The claims whose conditions do not hold in the records, as "NAME: CONDITION"; those without a kept
/// record are passed over.
std::vector<std::string> broken_verdicts(const std::vector<Claim>& claims, const Records& records);

/// Markdown; of claims whose records were not kept yet it says so. Throws std::invalid_argument, naming the
/// claim, where a placeholder cannot be filled.
std::string claims_text(const std::vector<Claim>& claims, const Records& records);

}  // namespace experiments::pages
