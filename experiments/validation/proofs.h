#pragma once
/// What committed records prove of rows, as the status tables of docs/ say it.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace experiments::validation {

/// A row of verdicts.csv that ran.
struct RowProof {
  bool is_complete_domain = false;  ///< its inputs are all that there are, and no list of chosen ones
  std::uint64_t inputs_possible = 0;
  std::uint64_t inputs = 0;
  std::uint64_t mismatches = 0;
  std::uint64_t other_nans = 0;
  std::uint64_t misrounded = 0;
};

/// By "operation, subject". None without the file; throws std::runtime_error, naming it, where it is damaged.
std::map<std::string, RowProof> row_proofs(const std::filesystem::path& verdicts);

/// Of a family of rows, by all records of one processor: a row counts with the most inputs that a record tried, and
/// with the mismatches of all.
struct FamilyProof {
  std::size_t run = 0, whole = 0, wrong = 0;
  std::uint64_t inputs = 0, mismatches = 0, other_nans = 0, misrounded = 0;
  std::vector<std::string> where;
};

/// `records` have `rows`, as row_proofs gives them, and `where`.
template <class Records>
FamilyProof proof_of(const std::vector<std::string>& ids, const Records& records) {
  FamilyProof family;
  for (const std::string& id : ids) {
    RowProof best;
    std::uint64_t mismatches = 0;
    for (const auto& record : records) {
      const auto found = record.rows.find(id);
      if (found == record.rows.end()) continue;
      mismatches += found->second.mismatches;
      if (found->second.inputs > best.inputs) best = found->second;
      if (std::ranges::find(family.where, record.where) == family.where.end())
        family.where.push_back(record.where);
    }
    if (best.inputs == 0) continue;
    ++family.run;
    family.whole += best.is_complete_domain && best.inputs == best.inputs_possible;
    family.wrong += mismatches != 0;
    family.inputs += best.inputs;
    family.mismatches += mismatches;
    family.other_nans += best.other_nans;
    family.misrounded += best.misrounded;
  }
  return family;
}

/// "all run, 3 on every input; no mismatch", of so many rows.
std::string result_text(const FamilyProof& family, std::size_t rows);

/// "2^32.0", or up to 99,999 as it is.
std::string power_text(std::uint64_t count);

/// "2030-01-02, 01234567", with ", modified" where it was: the day and the revision of a record by its manifest.
std::string day_and_revision(const std::filesystem::path& manifest);

/// The text with the table between its lines "<!-- MARK:begin -->" and "<!-- MARK:end -->". Throws
/// std::invalid_argument where it does not have both.
std::string with_table(const std::string& text, std::string_view mark, std::string_view table);

}  // namespace experiments::validation
