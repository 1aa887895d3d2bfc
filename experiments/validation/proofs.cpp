#include "experiments/validation/proofs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "experiments/validation/domains.h"
#include "experiments/validation/record_files.h"

namespace experiments::validation {

std::map<std::string, RowProof> row_proofs(const std::filesystem::path& verdicts) {
  std::map<std::string, RowProof> rows;
  const std::optional<CsvTable> table = CsvTable::read(verdicts);
  for (std::size_t i = 0; table && i < table->size(); ++i) {
    const bool is_complete = std::ranges::any_of(domains, [&](const Domain& domain) {
      return domain.is_complete && domain.meaning == table->cell(i, "domain");
    });
    const RowProof proof{.is_complete_domain = is_complete,
                         .inputs_possible = table->number(i, "inputs_possible"),
                         .inputs = table->number(i, "inputs"),
                         .mismatches = table->number(i, "mismatches"),
                         .other_nans = table->number(i, "other_nans"),
                         .misrounded = table->number(i, "not_correctly_rounded")};
    if (proof.inputs == 0) continue;
    rows[fmt::format("{}, {}", table->cell(i, "operation"), table->cell(i, "subject"))] = proof;
  }
  return rows;
}

std::string result_text(const FamilyProof& family, std::size_t rows) {
  const std::string all = family.run == rows ? "all" : fmt::format("{} of {}", family.run, rows);
  std::string text = fmt::format("{} run, {} on every input", all, family.whole);
  text += family.mismatches == 0 ? "; no mismatch"
                                 : fmt::format("; **{} mismatches in {}**", family.mismatches, family.wrong);
  if (family.other_nans != 0) text += fmt::format("; {} NaNs of other bits", family.other_nans);
  if (family.misrounded != 0) text += fmt::format("; {} not correctly rounded", family.misrounded);
  return text;
}

std::string power_text(std::uint64_t count) {
  constexpr std::uint64_t most_digits = 100'000;
  return count < most_digits ? fmt::format("{}", count)
                             : fmt::format("2^{:.1f}", std::log2(static_cast<double>(count)));
}

std::string day_and_revision(const std::filesystem::path& manifest) {
  constexpr std::size_t date_length = 10, revision_length = 8;
  const Json object = read_object(manifest);
  const auto text = [&](std::string_view key) {
    const Json* const found = object.find(key);
    return found != nullptr && found->is_string() ? found->string() : std::string();
  };
  return fmt::format("{}, {}{}", text("date").substr(0, date_length),
                     text("git_revision").substr(0, revision_length),
                     object.value("git_dirty", true).boolean() ? ", modified" : "");
}

std::string with_table(const std::string& text, std::string_view mark, std::string_view table) {
  const std::string begin_mark = fmt::format("<!-- {}:begin -->\n", mark);
  const std::string end_mark = fmt::format("<!-- {}:end -->\n", mark);
  const std::size_t begin = text.find(begin_mark), end = text.find(end_mark);
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    throw std::invalid_argument(
        fmt::format("no lines '<!-- {0}:begin -->' and '<!-- {0}:end -->' with the table "
                    "between them",
                    mark));
  const std::size_t start = begin + begin_mark.size();
  return text.substr(0, start) + std::string(table) + text.substr(end);
}

}  // namespace experiments::validation
