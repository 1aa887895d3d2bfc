#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/frame/text_table.h"
#include "tools/halflab/allreduce/findings.h"
#include "tools/halflab/inputs.h"

namespace halflab::allreduce {
namespace {

using namespace experiments;

struct Row {
  const Findings& found;
  const Reduced& kind;
};

const TableOf<Row> kinds_table{
    .name = "allreduce",
    .rows = "each order of additions in each precision, over all tensors",
    .columns = {{"order", "", [](auto& r) { return sim::name_of(r.kind.how.algorithm); }},
                {"precision", "", [](auto& r) { return sim::name_of(r.kind.how.precision); }},
                {"division", "", [](auto& r) { return sim::name_of(r.kind.how.division); }},
                {"relative_error", "1", [](auto& r) { return r.kind.loss.relative_error(); }},
                {"fraction_flushed", "1", [](auto& r) { return r.kind.loss.fraction_flushed(); }},
                {"norm_share_flushed", "1", [](auto& r) { return r.kind.loss.norm_share_flushed(); }},
                {"fraction_subnormal", "1", [](auto& r) { return r.kind.loss.fraction_subnormal(); }},
                {"overflowed", "values", [](auto& r) { return r.kind.loss.nonfinite; }},
                {"fraction_inputs_flushed", "1",
                 [](auto& r) { return r.found.share_of_inputs(r.kind.inputs_flushed); }}}};

const SummaryOf<Findings> summary{
    {{"ranks", "files or folders", &Findings::ranks},
     {"tensors", "of each", &Findings::tensors},
     {"elements", "of each, of all tensors", &Findings::elements},
     {"nonfinite_places", "elements that some rank has as NaN or infinity, which are left out",
      &Findings::nonfinite_places},
     {"inputs_overflow", "ranks' finite values that FP16 does not hold", &Findings::inputs_overflow},
     {"relative_error.one_rounding", "of the exact mean rounded once to FP16",
      [](auto& f) { return f.one_rounding.relative_error(); }}}};

const SummaryOf<Reduced> kinds_summary{
    {{"relative_error.<order>.<precision>", "||mean - exact mean|| / ||exact mean||",
      [](auto& k) { return k.loss.relative_error(); }},
     {"overflowed.<order>.<precision>", "elements of the mean that are not finite",
      [](auto& k) { return k.loss.nonfinite; }},
     {"fraction_flushed.<order>.<precision>", "of the elements whose exact mean is not zero: zero",
      [](auto& k) { return k.loss.fraction_flushed(); }}}};

std::string error_text(const Reduced& kind) {
  if (kind.loss.nonfinite > 0) return "overflow";
  return kind.loss.nonzero == 0 ? "-" : percent(kind.loss.relative_error());
}

/// The kinds in a precision whose mean is finite, the one with the least error first.
std::vector<const Reduced*> finite_by_error(const Findings& found, sim::AllReducePrecision precision) {
  std::vector<const Reduced*> kinds;
  for (const Reduced& kind : found.kinds)
    if (kind.how.precision == precision && kind.loss.nonfinite == 0) kinds.push_back(&kind);
  std::ranges::stable_sort(kinds, {}, [](auto* kind) { return kind->loss.relative_error(); });
  return kinds;
}

std::string_view words(sim::AllReducePrecision precision) {
  switch (precision) {
    case sim::AllReducePrecision::fp16:
      return "In FP16";
    case sim::AllReducePrecision::fp32_accumulation:
      return "With FP32 sums between FP16 messages";
    case sim::AllReducePrecision::fp32:
      return "In FP32";
  }
  return "";
}

/// What the best and the worst order of a precision cost.
std::string precision_sentence(const Findings& found, sim::AllReducePrecision precision) {
  const std::ptrdiff_t all =
      std::ranges::count(found.kinds, precision, [](const Reduced& kind) { return kind.how.precision; });
  if (all == 0) return {};
  const auto kinds = finite_by_error(found, precision);
  if (kinds.empty()) {
    const bool first_divided = found.kinds.front().how.division == sim::AllReduceDivision::before;
    return fmt::format(
        "{} the mean overflows in {}{}.", words(precision), all == 1 ? "this order" : "every order",
        first_divided || found.inputs_overflow > 0 ? "" : ", which --division before prevents");
  }
  const Reduced &best = *kinds.front(), &worst = *kinds.back();
  std::string sentence =
      fmt::format("{} the mean is off by {}", words(precision), percent(best.loss.relative_error()));
  const std::string at_worst = percent(worst.loss.relative_error());
  if (at_worst != percent(best.loss.relative_error()))
    sentence += fmt::format(" of its norm at best ({}) and by {} at worst ({})",
                            sim::name_of(best.how.algorithm), at_worst, sim::name_of(worst.how.algorithm));
  else
    sentence += fmt::format(" of its norm in {}", kinds.size() == 1 ? "this order" : "every order");
  if (std::ssize(kinds) < all)
    sentence += fmt::format(", and overflows in {} other order{}", all - std::ssize(kinds),
                            all - std::ssize(kinds) == 1 ? "" : "s");
  return sentence + ".";
}

std::string flushed_sentence(const Findings& found) {
  double inputs = 0, results = 0;
  for (const Reduced& kind : found.kinds) {
    inputs = std::max(inputs, found.share_of_inputs(kind.inputs_flushed));
    results = std::max(results, kind.loss.fraction_flushed());
  }
  if (inputs == 0 && results == 0) return {};
  return fmt::format(
      "Rounding to FP16 and dividing make up to {} of the ranks' non-zero values zero, and up to {} "
      "of the means.",
      percent(inputs), percent(results));
}

std::string inputs_sentence(const Findings& found) {
  std::string sentence;
  if (found.nonfinite_places > 0)
    sentence = fmt::format("Left out, as NaN or infinite at some rank already: {} of {} elements.",
                           found.nonfinite_places, found.elements);
  if (found.inputs_overflow > 0)
    sentence += fmt::format("{}{} values of the ranks are beyond FP16 before anything is added.",
                            sentence.empty() ? "" : " ", found.inputs_overflow);
  return sentence;
}

/// Where the exact mean is zero everywhere, so that no error has a share of it.
std::string answer_of_zero(const Findings& found) {
  if (found.nonfinite_places == found.elements)
    return "It cannot be told: every element is NaN or infinite at some rank already.";
  const auto norm = [](const Reduced& kind) { return kind.loss.run_norm(); };
  const Reduced& worst = *std::ranges::max_element(found.kinds, {}, norm);
  if (norm(worst) == 0) return "There is nothing to lose: the mean is zero everywhere, in every order.";
  return fmt::format(
      "The exact mean is zero everywhere, and {} of {} orders miss it: {} in {} has the norm {:.3g}.",
      std::ranges::count_if(found.kinds, [&](const Reduced& kind) { return norm(kind) != 0; }),
      found.kinds.size(), sim::name_of(worst.how.algorithm), sim::name_of(worst.how.precision), norm(worst));
}

std::vector<std::string> answers_of_nonzero(const Findings& found) {
  std::vector<std::string> sentences;
  for (const sim::AllReducePrecision precision : sim::all_reduce_precisions) {
    if (std::string sentence = precision_sentence(found, precision); !sentence.empty())
      sentences.push_back(std::move(sentence));
  }
  sentences.push_back(fmt::format(
      "Rounding the exact mean once to FP16 costs {}.",
      found.one_rounding.nonfinite > 0 ? "an overflow" : percent(found.one_rounding.relative_error())));
  return sentences;
}

std::string answer(const Findings& found) {
  std::vector<std::string> sentences =
      found.one_rounding.nonzero > 0 ? answers_of_nonzero(found) : std::vector{answer_of_zero(found)};
  for (const std::string& sentence :
       {flushed_sentence(found), inputs_sentence(found), passed_over_sentence(found.passed_over)})
    if (!sentence.empty()) sentences.push_back(sentence);
  return fmt::format("{}", fmt::join(sentences, " "));
}

/// "a.npy, b.npy, ..., h.npy", so that a shell's order of names is seen.
std::string ranks_in_order(const std::vector<std::string>& paths) {
  constexpr std::size_t most = 6;
  if (paths.size() <= most) return fmt::format("{}", fmt::join(paths, ", "));
  return fmt::format("{}, ..., {}", fmt::join(std::span(paths).first(most - 2), ", "), paths.back());
}

TextTable verdict_table(const Findings& found) {
  TextTable table{
      .columns = {"order of additions", "precision", "error", "mean flushed", "ranks' values flushed",
                  "overflowed"},
      .rows = {},
      .notes = {fmt::format("The mean of {} ranks, {} elements in {} tensor{}, each its own message; "
                            "division by {}: {}.",
                            found.ranks, found.elements, found.tensors, found.tensors == 1 ? "" : "s",
                            found.ranks, sim::name_of(found.kinds.front().how.division)),
                fmt::format("Ranks, in this order: {}.", ranks_in_order(found.paths)),
                "error: ||mean - exact mean|| / ||exact mean||; flushed: non-zero and becomes zero."}};
  for (const Reduced& kind : found.kinds)
    table.rows.push_back({fmt::format("{}", sim::name_of(kind.how.algorithm)),
                          fmt::format("{}", sim::name_of(kind.how.precision)), error_text(kind),
                          percent(kind.loss.fraction_flushed()),
                          percent(found.share_of_inputs(kind.inputs_flushed)),
                          fmt::format("{}", kind.loss.nonfinite)});
  if (!found.are_halves)
    table.notes.emplace_back(
        "The files hold more than FP16 does: for fp16 and fp32_accumulation the ranks' values are "
        "rounded to it first, as a compressing hook does, and that loss is counted.");
  return table;
}

}  // namespace

Outputs outputs() {
  return outputs_of(kinds_table, summary, kinds_summary);
}

void report(Run& run, const Findings& found) {
  RunRecord& record = run.record();
  const auto add = kinds_table.start(record);
  for (const Reduced& kind : found.kinds) add({found, kind});
  summary.write(record, found);
  for (const Reduced& kind : found.kinds)
    kinds_summary.write(record, kind, {sim::name_of(kind.how.algorithm), sim::name_of(kind.how.precision)});
  if (run.draws()) draw_figure(run, found);
  record.verdict(answer(found));
  record.verdict(verdict_table(found).text());
}

}  // namespace halflab::allreduce
