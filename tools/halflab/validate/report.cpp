#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/frame/printable.h"
#include "experiments/frame/text_table.h"
#include "tools/halflab/code_text.h"
#include "tools/halflab/validate/findings.h"

namespace halflab::validate {
namespace {

using namespace experiments;

struct ExampleRow {
  const Findings& found;
  const Counterexample& example;

  const fp16::Format& operand_format() const { return found.operands->format; }
  const fp16::Format& result_format() const { return found.result->format; }
  bool has(std::size_t operand) const { return found.function->arity > static_cast<int>(operand); }
  std::string operand(std::size_t i) const {
    return has(i) ? fmt::format("{} ({})", value_text(operand_format(), example.operands[i]),
                                code_text(operand_format(), example.operands[i]))
                  : "";
  }
  std::string of_result(std::uint64_t code) const {
    return fmt::format("{} ({})", value_text(result_format(), code), code_text(result_format(), code));
  }
  /// A NaN is no distance away.
  std::string distance() const {
    const CodeQuestions questions = questions_of(result_format());
    return questions.is_nan(example.expected) || questions.is_nan(example.result)
               ? "-"
               : fmt::format("{}", questions.distance(example.expected, example.result));
  }
};

std::string_view name_of(Difference difference) {
  constexpr std::array<std::string_view, 3> names{"wrong", "nan_bits", "allowed"};
  return names[static_cast<std::size_t>(difference)];
}

const TableOf<ExampleRow> counterexamples_table{
    .name = "counterexamples",
    .rows =
        "each of the first results that differ: what is wrong, then NaNs of other bits, then what is allowed",
    .columns = {{"index", "", [](auto& row) { return row.example.index; }},
                {"a", "", [](auto& row) { return row.operand(0); }},
                {"b", "", [](auto& row) { return row.operand(1); }},
                {"c", "", [](auto& row) { return row.operand(2); }},
                {"expected", "", [](auto& row) { return row.of_result(row.example.expected); }},
                {"result", "", [](auto& row) { return row.of_result(row.example.result); }},
                {"distance_ulp", "ulp", [](auto& row) { return row.distance(); }},
                {"difference", "", [](auto& row) { return name_of(row.example.difference); }}}};

struct DeviationRow {
  const Findings& found;
  std::size_t deviation;

  std::uint64_t explained() const {
    std::uint64_t count = 0;
    for (const auto& [set, results] : found.counts.by_deviations) count += (set >> deviation & 1) * results;
    return count;
  }
};

const TableOf<DeviationRow> deviations_table{
    .name = "deviations",
    .rows = "each known deviation of the operation",
    .columns = {{"deviation", "", [](auto& row) { return row.found.deviations[row.deviation].text; }},
                {"differing", "results", [](auto& row) { return row.found.counts.differing; }},
                {"explained", "results", [](auto& row) { return row.explained(); }},
                {"contradicted", "results of a sample of the right ones",
                 [](auto& row) { return row.found.counts.contradictions[row.deviation]; }}}};

struct DistanceRow {
  const Findings& found;
  std::size_t bin;
};

const TableOf<DistanceRow> distances_table{
    .name = "distances",
    .rows = "each range of distances",
    .columns = {{"from_ulp", "ulp", [](auto& row) { return UlpHistogram::range(row.bin).from; }},
                {"to_ulp", "ulp", [](auto& row) { return UlpHistogram::range(row.bin).to; }},
                {"results", "results", [](auto& row) { return row.found.counts.by_ulp.counts[row.bin]; }}}};

struct PartRow {
  const Findings& found;
  std::size_t a, b;

  const Share& share() const { return found.counts.by_part[a][b]; }
  std::string name(std::size_t part) const {
    return part == parts ? "NaN"
                         : value_text(found.operands->format, first_code(found.operands->format, part));
  }
};

const TableOf<PartRow> parts_table{
    .name = "parts",
    .rows = "each part of the range of the first operand and, where there is one, the second",
    .columns = {{"tensor", "", [](auto& row) { return row.name(row.a); }},
                {"part_a", "", [](auto& row) { return row.a; }},
                {"part_b", "", [](auto& row) { return row.b; }},
                {"results", "results", [](auto& row) { return row.share().results; }},
                {"differing", "results", [](auto& row) { return row.share().differing; }},
                {"differing_percent", "%",
                 [](auto& row) {
                   return 100 * static_cast<double>(row.share().differing) /
                          static_cast<double>(row.share().results);
                 }},
                {"most_ulp", "ulp", [](auto& row) { return row.share().most_ulp; }}}};

std::string text_of(const Findings& found, const std::vector<std::size_t>& deviations) {
  std::vector<std::string> texts;
  for (const std::size_t i : deviations) texts.push_back(found.deviations[i].text);
  return fmt::format("{}", fmt::join(texts, "; "));
}

std::string explanation_text(const Findings& found) {
  return text_of(found, found.explanation);
}

auto of_counts(std::uint64_t Counts::*count) {
  return [count](const Findings& found) { return found.counts.*count; };
}

const SummaryOf<Findings> summary{
    {{"class", "equal, within or different", [](const Findings& found) { return found.name_of_class(); }},
     {"operation", "that was checked", [](const Findings& found) { return found.function->name; }},
     {"operands", "their format", [](const Findings& found) { return found.operands->name; }},
     {"result", "its format", [](const Findings& found) { return found.result->name; }},
     {"results", "that were checked", of_counts(&Counts::results)},
     {"differing", "results", of_counts(&Counts::differing)},
     {"beyond", "results that are not allowed by --ulp and --nan", of_counts(&Counts::beyond)},
     {"one_nan", "results where what is expected or the result alone is a NaN", of_counts(&Counts::one_nan)},
     {"nan_bits", "NaNs with other bits than expected", of_counts(&Counts::nan_bits)},
     {"most_ulp", "largest distance", [](const Findings& found) { return found.counts.by_ulp.most; }},
     {"explanation", "the deviations that explain all that differs, or nothing", explanation_text},
     {"rivals", "other explanations as good, which these results do not tell apart",
      [](const Findings& found) { return found.rivals.size(); }},
     {"contradicted", "right results that these deviations would not give",
      [](const Findings& found) { return found.contradictions.results; }}}};

void write_tables(RunRecord& record, const Findings& found) {
  const auto add_example = counterexamples_table.start(record);
  for (const Counterexample& example : found.counts.first) add_example({found, example});
  const auto add_deviation = deviations_table.start(record);
  for (std::size_t i = 0; i < found.deviations.size(); ++i) add_deviation({found, i});
  const auto add_distance = distances_table.start(record);
  for (std::size_t bin = 0; bin < found.counts.by_ulp.used_bins(); ++bin) add_distance({found, bin});
  const auto add_part = parts_table.start(record);
  for (std::size_t a = 0; a <= parts; ++a) {
    for (std::size_t b = 0; b <= parts; ++b) {
      if (found.counts.by_part[a][b].results > 0) add_part({found, a, b});
    }
  }
}

std::string distance_clause(const Findings& found) {
  const std::uint64_t most = found.counts.by_ulp.most;
  return most == 0 ? "" : fmt::format(", by up to {} ulp", most);
}

std::string answer(const Findings& found) {
  const Counts& counts = found.counts;
  const std::string what = fmt::format("{} in {}", found.function->name, found.result->name);
  if (counts.differing == 0)
    return fmt::format("equal: all {} results of {} are the exact values rounded once.", counts.results,
                       what);
  const std::string share =
      percent(static_cast<double>(counts.differing) / static_cast<double>(counts.results));
  if (found.holds())
    return fmt::format("within: {} of {} results of {} differ ({}){}; that is allowed.", counts.differing,
                       counts.results, what, share, distance_clause(found));
  return fmt::format(
      "different: {} of {} results of {} differ ({}){}{}.", counts.differing, counts.results, what, share,
      distance_clause(found),
      counts.one_nan > 0 ? fmt::format("; {} times one side alone is a NaN", counts.one_nan) : "");
}

/// A right result that speaks against deviations which explain all that differs; empty where none does.
std::string contradiction_clause(const Findings& found) {
  return found.contradictions.results > 0
             ? fmt::format(
                   " But not everywhere: {} right results would be other ones then, the first at index {}.",
                   found.contradictions.results, found.contradictions.first)
             : "";
}

/// Explanations as good as the one that is told.
std::string rivals_clause(const Findings& found) {
  if (found.rivals.empty()) return {};
  const std::size_t others = found.rivals.size() - 1;
  return fmt::format(" So does this, which these results do not tell from it: {}{}.",
                     text_of(found, found.rivals.front()),
                     others > 0 ? fmt::format(", or {}", counted(others, "further explanation")) : "");
}

/// Where nothing but NaNs' bits and zeros' signs is wrong, how to allow that.
std::string trifle_clause(const Findings& found) {
  const Counts& counts = found.counts;
  if (counts.beyond == 0 || counts.beyond != counts.nan_bits + counts.zero_signs) return "";
  return counts.zero_signs == 0 ? " Only bits of NaNs are wrong: --nan any allows that."
         : counts.nan_bits == 0 ? " Only signs of zeros are wrong: --ulp 1 allows that."
                                : " Only bits of NaNs and signs of zeros are wrong: "
                                  "--nan any and --ulp 1 allow that.";
}

/// The deviation that explains most, where none explains all; empty where it explains little, or more speaks against it.
std::string best_clause(const Findings& found) {
  std::size_t best = 0;
  const auto explained = [&](std::size_t i) { return DeviationRow{found, i}.explained(); };
  for (std::size_t i = 1; i < found.deviations.size(); ++i) {
    const auto place = [&](std::size_t of) {
      return std::tuple(found.counts.contradictions[of] * sampling <= explained(of), explained(of));
    };
    if (place(i) > place(best)) best = i;
  }
  const std::uint64_t against = found.counts.contradictions[best] * sampling;
  if (found.deviations.empty() || explained(best) * 10 < found.counts.differing || against > explained(best))
    return {};
  return fmt::format(
      "; that {} explains {}{}", found.deviations[best].text, explained(best),
      against == 0 ? "" : fmt::format(", though about {} right results would be other ones then", against));
}

std::string explanation_sentence(const Findings& found) {
  constexpr std::uint64_t roughest_ulp = 64, few = 16;
  const Counts& counts = found.counts;
  if (counts.differing == 0) return {};
  const bool is_range = has_range(found.deviations, found.explanation);
  if (!found.explanation.empty())
    return fmt::format("What {} them{}: {}.{}{}", is_range ? "can explain" : "explains all of",
                       is_range && counts.differing < few ? ", though so few prove nothing" : "",
                       explanation_text(found), contradiction_clause(found),
                       rivals_clause(found) + trifle_clause(found));
  std::string sentence = "No known deviation explains all of them" + best_clause(found);
  if (counts.one_nan == 0 && counts.by_ulp.most > 0 && counts.by_ulp.most <= roughest_ulp)
    sentence += fmt::format(". It is an approximation of at most {} ulp", counts.by_ulp.most);
  return sentence + "." + trifle_clause(found);
}

std::string examples_text(const Findings& found) {
  const std::vector<std::string> names =
      found.function->arity == 1 ? std::vector<std::string>{"x"} : std::vector<std::string>{"a", "b", "c"};
  TextTable table{.columns = {"index"}, .rows = {}, .notes = {}};
  for (int i = 0; i < found.function->arity; ++i) table.columns.push_back(names[static_cast<std::size_t>(i)]);
  table.columns.insert(table.columns.end(), {"expected", "result", "ulp"});
  for (const Counterexample& example : found.counts.first) {
    const ExampleRow row{found, example};
    std::vector<std::string> cells{fmt::format("{}", example.index)};
    for (std::size_t i = 0; row.has(i) && i < 3; ++i) cells.push_back(row.operand(i));
    cells.insert(cells.end(),
                 {row.of_result(example.expected), row.of_result(example.result), row.distance()});
    table.rows.push_back(cells);
  }
  if (found.counts.differing > found.counts.first.size())
    table.notes.push_back(
        fmt::format("The first {} of {}.", found.counts.first.size(), found.counts.differing));
  return table.text();
}

}  // namespace

Outputs outputs() {
  return outputs_of(counterexamples_table, deviations_table, distances_table, parts_table, summary);
}

void report(Run& run, const Findings& found) {
  write_tables(run.record(), found);
  summary.write(run.record(), found);
  if (run.draws()) draw_figures(run, found);
  run.record().verdict(answer(found));
  if (const std::string sentence = explanation_sentence(found); !sentence.empty())
    run.record().verdict(sentence);
  if (!found.counts.first.empty()) run.record().verdict(examples_text(found));
}

}  // namespace halflab::validate
