#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/frame/printable.h"
#include "experiments/frame/tensor_files/element_reader.h"
#include "experiments/frame/text_table.h"
#include "tools/halflab/code_text.h"
#include "tools/halflab/compare/findings.h"
#include "tools/halflab/elements.h"

namespace halflab::compare {
namespace {

using namespace experiments;

std::string code_text(std::uint64_t code, const tensor_files::StoredTensor& tensor) {
  return halflab::code_text(format_of(tensor), code);
}

std::string value_text(std::uint64_t code, const tensor_files::StoredTensor& tensor) {
  return halflab::value_text(format_of(tensor), code);
}

std::string index_text(const PairFound& pair, const Difference& difference) {
  tensor_files::StoredTensor in_c_order = *pair.a;
  in_c_order.columns_first = false;
  return tensor_files::index_text(in_c_order, difference.index);
}

/// An explanation without the format at its end.
std::string_view cause_of(std::string_view text) {
  return text.substr(0, text.rfind(' ') + 1);
}

/// What holds for all of it, to whichever formats; empty where nothing does.
std::string explanation(const Counts& counts, const RoundingFound& rounding) {
  const std::vector<Explanation> all = explanations(counts, rounding);
  const auto complete = std::ranges::find(all, true, &Explanation::is_complete);
  if (complete == all.end()) return {};
  std::string text = complete->text;
  for (auto other = std::next(complete); other != all.end(); ++other) {
    const std::string_view cause = cause_of(complete->text);
    if (other->is_complete && cause.ends_with(" to ") && cause_of(other->text) == cause)
      text += fmt::format(" or {}", std::string_view(other->text).substr(cause.size()));
  }
  return text;
}

/// A tensor, or all together.
struct Row {
  const Findings& found;
  const PairFound* pair;  ///< none: all

  const Counts& counts() const { return pair ? pair->counts : found.total; }
  std::string explanation() const {
    return compare::explanation(counts(), pair ? pair->rounding : found.rounding);
  }
};

auto of_counts(std::uint64_t Counts::*count) {
  return [count](const Row& row) { return row.counts().*count; };
}

std::vector<Column<Row>> columns_of_counts() {
  return {{"values", "values", of_counts(&Counts::elements)},
          {"differing", "values", of_counts(&Counts::differing)},
          {"beyond", "values", of_counts(&Counts::beyond)},
          {"most_ulp", "ulp", [](const Row& row) { return row.counts().by_ulp.most; }},
          {"largest_difference", "1", [](const Row& row) { return row.counts().largest; }},
          {"nan_bits", "values", of_counts(&Counts::nan_bits)},
          {"zero_signs", "values", of_counts(&Counts::zero_signs)},
          {"one_nan", "values", of_counts(&Counts::one_nan)},
          {"one_infinite", "values", of_counts(&Counts::one_infinite)},
          {"explanation", "", [](const Row& row) { return row.explanation(); }}};
}

const TableOf<Row> tensors_table{
    .name = "tensors",
    .rows = "each tensor that both have",
    .columns = joined<Column<Row>>(
        {{"tensor", "", [](auto& row) { return row.pair->name; }},
         {"class", "", [](auto& row) { return name_of(row.pair->found); }},
         {"format_a", "", [](auto& row) { return row.pair->a->type->format; }},
         {"format_b", "", [](auto& row) { return row.pair->b->type->format; }},
         {"shape_a", "", [](auto& row) { return tensor_files::text_of(row.pair->a->shape); }},
         {"shape_b", "", [](auto& row) { return tensor_files::text_of(row.pair->b->shape); }},
         {"ulp_of", "", [](auto& row) { return row.pair->format->name; }}},
        columns_of_counts())};

struct BinRow {
  std::string tensor;
  const Counts& counts;
  std::size_t bin;
};

const TableOf<BinRow> distances_table{
    .name = "distances",
    .rows = "each range of distances, of each tensor that differs and of all",
    .columns = {{"tensor", "", [](auto& row) { return row.tensor; }},
                {"bin", "", [](auto& row) { return row.bin; }},
                {"from_ulp", "ulp", [](auto& row) { return UlpHistogram::range(row.bin).from; }},
                {"to_ulp", "ulp", [](auto& row) { return UlpHistogram::range(row.bin).to; }},
                {"values", "values", [](auto& row) { return row.counts.by_ulp.counts[row.bin]; }},
                {"share_percent", "%", [](auto& row) {
                   return 100 * static_cast<double>(row.counts.by_ulp.counts[row.bin]) /
                          static_cast<double>(row.counts.elements);
                 }}}};

struct DifferenceRow {
  const PairFound& pair;
  const Difference& difference;
};

const TableOf<DifferenceRow> differences_table{
    .name = "differences",
    .rows = "each of the first differences of a tensor; with --as or --ulp of those beyond them",
    .columns = {{"tensor", "", [](auto& row) { return row.pair.name; }},
                {"index", "", [](auto& row) { return index_text(row.pair, row.difference); }},
                {"a", "", [](auto& row) { return value_text(row.difference.code_a, *row.pair.a); }},
                {"b", "", [](auto& row) { return value_text(row.difference.code_b, *row.pair.b); }},
                {"code_a", "", [](auto& row) { return code_text(row.difference.code_a, *row.pair.a); }},
                {"code_b", "", [](auto& row) { return code_text(row.difference.code_b, *row.pair.b); }}}};

struct ExplanationRow {
  std::string tensor;
  const Counts& counts;
  Explanation explanation;
};

const TableOf<ExplanationRow> explanations_table{
    .name = "explanations",
    .rows = "each explanation of differences, of each tensor that differs and of all",
    .columns = {{"tensor", "", [](auto& row) { return row.tensor; }},
                {"explanation", "", [](auto& row) { return row.explanation.text; }},
                {"differing", "values", [](auto& row) { return row.counts.differing; }},
                {"explained", "values", [](auto& row) { return row.explanation.explained; }},
                {"holds_for_all", "", [](auto& row) { return row.explanation.is_complete ? "yes" : "no"; }}}};

struct RoundingRow {
  std::string tensor;
  const Counts& counts;
  const RoundedTo& to;
  std::string_view format;

  /// Once both are rounded.
  std::uint64_t remaining() const { return counts.differing - counts.nan_bits - to.agree; }
};

const TableOf<RoundingRow> roundings_table{
    .name = "roundings",
    .rows = "each format that both could be rounded to, of each tensor that differs and of all",
    .columns = {{"tensor", "", [](auto& row) { return row.tensor; }},
                {"format", "", [](auto& row) { return row.format; }},
                {"differing", "values", [](auto& row) { return row.counts.differing; }},
                {"differing_once_rounded", "values", [](auto& row) { return row.remaining(); }}}};

/// A row for each format that tells something.
std::vector<RoundingRow> rounding_rows(const std::string& tensor, const Counts& counts,
                                       const RoundingFound& rounding) {
  std::vector<RoundingRow> rows;
  for (std::size_t i = 0; i < rounding_formats.size(); ++i) {
    if (rounding.applies[i])
      rows.push_back({tensor, counts, rounding.by_format[i], rounding_formats[i].name});
  }
  return rows;
}

auto of_class(Class found) {
  return [found](const Row& row) { return row.found.count(found); };
}

SummaryOf<Row> summary() {
  std::vector<SummaryRow<Row>> rows{
      {"class", "equal, within or different", [](const Row& row) { return name_of(row.found.found); }},
      {"tensors", "that both have", [](const Row& row) { return row.found.pairs.size(); }},
      {"tensors_equal", "of these", of_class(Class::equal)},
      {"tensors_within", "of these", of_class(Class::within)},
      {"tensors_different", "of these", of_class(Class::different)},
      {"others", "tensors that are no floating-point numbers and were compared in bits",
       [](const Row& row) { return row.found.others.size(); }},
      {"only_in_a", "tensors", [](const Row& row) { return row.found.only_a.size(); }},
      {"only_in_b", "tensors", [](const Row& row) { return row.found.only_b.size(); }},
      {"ulp_allowed", "what --ulp says, or 0", [](const Row& row) { return row.found.ulp; }}};
  for (const Column<Row>& column : columns_of_counts())
    rows.push_back({column.name, "of all tensors, as the table has it", column.value});
  return {rows};
}

void write_tables(RunRecord& record, const Findings& found) {
  const auto add_tensor = tensors_table.start(record);
  const auto add_bin = distances_table.start(record);
  const auto add_difference = differences_table.start(record);
  const auto add_explanation = explanations_table.start(record);
  const auto add_rounding = roundings_table.start(record);
  const auto add_counts = [&](const std::string& name, const Counts& counts, const RoundingFound& rounding) {
    if (counts.differing == 0) return;
    for (std::size_t bin = 0; bin < counts.by_ulp.used_bins(); ++bin) add_bin({name, counts, bin});
    for (const Explanation& explanation : explanations(counts, rounding))
      add_explanation({name, counts, explanation});
    for (const RoundingRow& row : rounding_rows(name, counts, rounding)) add_rounding(row);
  };
  for (const PairFound& pair : found.pairs) {
    add_tensor({found, &pair});
    add_counts(pair.name, pair.counts, pair.rounding);
    for (const Difference& difference : pair.counts.first) add_difference({pair, difference});
  }
  add_counts("all tensors", found.total, found.rounding);
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::ptrdiff_t most = 5;
  const auto end = names.begin() + std::min(most, std::ssize(names));
  return fmt::format("{}{}", fmt::join(names.begin(), end, ", "),
                     std::ssize(names) > most ? fmt::format(" and {} more", std::ssize(names) - most) : "");
}

std::string ulp_text(std::uint64_t distance) {
  return distance < 100'000 ? fmt::format("{} ulp", distance)
                            : fmt::format("{:.2g} ulp", static_cast<double>(distance));
}

/// " of binary16", where all tensors are compared in one format.
std::string of_format(const Findings& found) {
  const fp16::NamedFormat* const format = found.pairs.front().format;
  const bool is_one = std::ranges::all_of(found.pairs, [&](auto& pair) { return pair.format == format; });
  return is_one ? fmt::format(" of {}", format->name) : "";
}

std::string share_text(std::uint64_t count, std::uint64_t all) {
  return fmt::format("{} of {} values ({})", count, all,
                     percent(static_cast<double>(count) / static_cast<double>(all)));
}

std::string tensors_text(const Findings& found) {
  const std::size_t tensors = found.pairs.size() + found.others.size();
  return tensors == 1 ? "" : fmt::format(" in all {} tensors", tensors);
}

/// What differs in names, shapes and formats, a clause each.
void add_structure(const Findings& found, std::vector<std::string>& clauses) {
  if (!found.only_a.empty())
    clauses.push_back(
        fmt::format("{} in A alone: {}", counted(found.only_a.size(), "tensor"), listed(found.only_a)));
  if (!found.only_b.empty())
    clauses.push_back(
        fmt::format("{} in B alone: {}", counted(found.only_b.size(), "tensor"), listed(found.only_b)));
  std::vector<std::string> shapes, formats;
  for (const PairFound& pair : found.pairs) {
    if (!pair.same_shape())
      shapes.push_back(fmt::format("{} {} and {}", pair.name, tensor_files::text_of(pair.a->shape),
                                   tensor_files::text_of(pair.b->shape)));
    if (!pair.same_format() && found.asks_bits)
      formats.push_back(fmt::format("{} {} and {}", pair.name, pair.a->type->format, pair.b->type->format));
  }
  std::vector<std::string> others;
  for (const OtherFound& other : found.others) {
    if (!other.is_equal) others.push_back(other.name);
  }
  if (!others.empty()) clauses.push_back("different, though no floating-point numbers: " + listed(others));
  if (!shapes.empty()) clauses.push_back("different shapes: " + listed(shapes));
  if (!formats.empty()) clauses.push_back("different formats: " + listed(formats));
}

/// What differs in values, a clause each.
void add_values(const Findings& found, std::vector<std::string>& clauses) {
  const Counts& total = found.total;
  const std::uint64_t far = (found.asks_bits ? total.differing : total.beyond) - total.one_nan;
  if (far > 0) {
    const std::string how = found.asks_bits  ? "differ"
                            : found.ulp == 0 ? "differ as numbers"
                                             : fmt::format("are more than {} apart", ulp_text(found.ulp));
    clauses.push_back(fmt::format(
        "{} {}{}", share_text(far, total.elements), how,
        total.by_ulp.most > 0 ? fmt::format(", by up to {}{}", ulp_text(total.by_ulp.most), of_format(found))
                              : ""));
  }
  if (total.one_nan > 0)
    clauses.push_back(fmt::format("at {} one side alone is a NaN", counted(total.one_nan, "place")));
  if (far == 0 && total.one_nan == 0 && total.elements > 0)
    clauses.push_back(fmt::format("all {} values that both have are {}", total.elements,
                                  total.differing == 0 ? "the same" : "near enough"));
}

std::string answer(const Findings& found) {
  const Counts& total = found.total;
  if (found.found == Class::equal) {
    std::uint64_t values = total.elements;
    for (const OtherFound& other : found.others) values += other.elements;
    return fmt::format("equal: A and B have the same bits{}, {}.", tensors_text(found),
                       counted(values, "value"));
  }
  if (found.found == Class::within)
    return fmt::format("within: A and B are {}{}; as stored, {}.",
                       total.by_ulp.most == 0
                           ? fmt::format("the same numbers{}", of_format(found))
                           : fmt::format("at most {}{} apart", ulp_text(total.by_ulp.most), of_format(found)),
                       tensors_text(found),
                       total.differing == 0 ? "only the formats differ"
                                            : share_text(total.differing, total.elements) + " differ");
  std::vector<std::string> clauses;
  add_structure(found, clauses);
  add_values(found, clauses);
  return fmt::format("different: {}.", fmt::join(clauses, "; "));
}

std::string first_sentence(const Findings& found) {
  const auto pair = std::ranges::find_if(found.pairs, [](auto& each) { return !each.counts.first.empty(); });
  if (pair == found.pairs.end()) return {};
  const Difference& first = pair->counts.first.front();
  return fmt::format(
      "The first difference{} is {}{}: {} ({}) in A, {} ({}) in B.", found.asks_bits ? "" : " beyond that",
      found.pairs.size() == 1 ? "at " : fmt::format("in {} at ", pair->name), index_text(*pair, first),
      value_text(first.code_a, *pair->a), code_text(first.code_a, *pair->a),
      value_text(first.code_b, *pair->b), code_text(first.code_b, *pair->b));
}

/// The finest format in which nothing differs any more, or what still differs in one that anybody would ask about.
std::string remaining_clause(const Findings& found) {
  const std::vector<RoundingRow> rows = rounding_rows("", found.total, found.rounding);
  const auto none = std::ranges::find(rows, 0, &RoundingRow::remaining);
  if (none != rows.end()) return fmt::format("; once both are rounded to {}, nothing differs", none->format);
  for (const std::string_view name : {"binary16", "bfloat16", "e4m3"}) {
    const auto row = std::ranges::find(rows, name, &RoundingRow::format);
    if (row != rows.end())
      return fmt::format(
          "; once both are rounded to {}, {} of the differences remain", name,
          percent(static_cast<double>(row->remaining()) / static_cast<double>(found.total.differing)));
  }
  return {};
}

std::string explanation_sentence(const Findings& found) {
  if (found.total.differing == 0) return {};
  if (const std::string all = explanation(found.total, found.rounding); !all.empty())
    return fmt::format("One thing explains all of it: {}.", all);
  const auto differs = [](const PairFound& pair) { return pair.counts.differing > 0; };
  const auto differing = std::ranges::count_if(found.pairs, differs);
  const auto explained = std::ranges::count_if(found.pairs, [&](const PairFound& pair) {
    return differs(pair) && !explanation(pair.counts, pair.rounding).empty();
  });
  if (explained > 0)
    return fmt::format("Rounding or the like explains {} of the {} tensors that differ, as the table says.",
                       explained, differing);
  return fmt::format("No rounding or flush explains it{}.", remaining_clause(found));
}

std::vector<std::string> cells(const PairFound& pair) {
  const Counts& counts = pair.counts;
  const bool has_values = pair.same_shape();
  return {pair.name,
          std::string(name_of(pair.found)),
          has_values ? fmt::format("{}", counts.elements) : "-",
          has_values ? fmt::format("{}", counts.differing) : "-",
          has_values ? ulp_text(counts.by_ulp.most) : "-",
          has_values ? fmt::format("{:.3g}", counts.largest) : "-",
          counts.first.empty() ? "" : index_text(pair, counts.first.front()),
          has_values ? explanation(counts, pair.rounding) : "shapes differ"};
}

/// The tensors that are not equal, those with the largest share of differing values first.
std::vector<const PairFound*> worst_first(const Findings& found) {
  std::vector<const PairFound*> sorted;
  for (const PairFound& pair : found.pairs) {
    if (pair.found != Class::equal) sorted.push_back(&pair);
  }
  std::ranges::stable_sort(sorted, std::greater(), [](const PairFound* pair) {
    return std::pair(pair->found, static_cast<double>(pair->counts.differing) /
                                      static_cast<double>(std::max<std::uint64_t>(pair->counts.elements, 1)));
  });
  return sorted;
}

std::string verdict_table(const Findings& found) {
  constexpr std::size_t most_rows = 12;
  TextTable table{.columns = {"tensor", "class", "values", "differ", "most", "largest |A - B|", "first at",
                              "explanation"},
                  .rows = {},
                  .notes = {}};
  const std::vector<const PairFound*> sorted = worst_first(found);
  for (const PairFound* const pair : sorted) {
    if (table.rows.size() == most_rows) {
      table.notes.push_back(
          fmt::format("{} of {} tensors that are not equal; --out writes all.", most_rows, sorted.size()));
      break;
    }
    table.rows.push_back(cells(*pair));
  }
  return table.rows.empty() ? "" : table.text();
}

void write_verdict(RunRecord& record, const Findings& found) {
  record.verdict(answer(found));
  std::vector<std::string> sentences;
  for (const std::string& sentence : {first_sentence(found), explanation_sentence(found)})
    if (!sentence.empty()) sentences.push_back(sentence);
  if (!sentences.empty()) record.verdict(fmt::format("{}", fmt::join(sentences, " ")));
  if (const std::string table = verdict_table(found); !table.empty()) record.verdict(table);
}

}  // namespace

Outputs outputs() {
  return outputs_of(tensors_table, distances_table, differences_table, explanations_table, roundings_table,
                    summary());
}

void report(Run& run, const Findings& found) {
  write_tables(run.record(), found);
  summary().write(run.record(), {found, nullptr});
  if (run.draws()) draw_figures(run, found);
  write_verdict(run.record(), found);
}

}  // namespace halflab::compare
