#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/frame/printable.h"
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

constexpr const char* in_bf16 = "where BF16 is asked for";

const SummaryOf<Findings> summary{
    {{"ranks", "files or folders", &Findings::ranks},
     {"tensors", "of each", &Findings::tensors},
     {"elements", "of each, of all tensors", &Findings::elements},
     {"nonfinite_places", "elements that some rank has as NaN or infinity, which are left out",
      &Findings::nonfinite_places},
     {"places_beyond_fp32", "further elements that are left out, as some rank's value is beyond FP32",
      [](auto& f) { return f.first_rounding.places_beyond; }},
     {"inputs_flushed_in_fp32", "ranks' non-zero values that FP32 makes zero",
      [](auto& f) { return f.first_rounding.flushed; }},
     {"relative_error.inputs_in_fp32", "of the ranks' values, rounded to FP32 before all else",
      [](auto& f) { return f.first_rounding.relative_error(); }},
     {"inputs_overflow", "ranks' finite values that FP16 does not hold",
      [](auto& f) { return f.halves().overflow; }},
     {"relative_error.one_rounding", "of the exact mean rounded once to FP16",
      [](auto& f) { return f.halves().one_rounding.relative_error(); }}}};

const SummaryOf<Sent> bfloat16_summary{
    {{"inputs_overflow_in_bf16", "ranks' finite values that BF16 does not hold", &Sent::overflow, in_bf16},
     {"relative_error.one_rounding_to_bf16", "of the exact mean rounded once to BF16",
      [](auto& sent) { return sent.one_rounding.relative_error(); }, in_bf16}}};

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
    case sim::AllReducePrecision::bf16:
      return "In BF16";
    case sim::AllReducePrecision::bf16_fp32_accumulation:
      return "With FP32 sums between BF16 messages";
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
    const Sent* const sent = found.sent_in(precision);
    return fmt::format(
        "{} the mean overflows in {}{}.", words(precision), all == 1 ? "this order" : "every order",
        first_divided || (sent && sent->overflow > 0) ? "" : ", which --division before prevents");
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
    sentence += fmt::format(", and overflows in {}",
                            counted(static_cast<std::size_t>(all - std::ssize(kinds)), "other order"));
  return sentence + ".";
}

/// Which of the two formats of 16 bits is nearer, each in its best order and accumulation; empty where one is not asked for.
std::string nearer_sentence(const Findings& found) {
  std::array<const Reduced*, 2> best{};
  for (std::size_t i = 0; i < found.sent.size(); ++i) {
    if (!found.is_asked(found.sent[i])) return {};
    for (const sim::AllReducePrecision precision : sim::all_reduce_precisions) {
      if (found.sent_in(precision) != &found.sent[i]) continue;
      const auto kinds = finite_by_error(found, precision);
      if (kinds.empty()) continue;
      if (best[i] == nullptr || kinds.front()->loss.relative_error() < best[i]->loss.relative_error())
        best[i] = kinds.front();
    }
  }
  const auto& [fp16, bf16] = best;
  if (fp16 == nullptr || bf16 == nullptr)
    return fp16 == bf16 ? ""
                        : fmt::format("{} holds what overflows in {}.", fp16 ? "FP16" : "BF16",
                                      fp16 ? "BF16" : "FP16");
  const double of_fp16 = fp16->loss.relative_error(), of_bf16 = bf16->loss.relative_error();
  if (of_fp16 == of_bf16) return "FP16 and BF16 are as near.";
  const bool is_fp16 = of_fp16 < of_bf16;
  const double ratio = is_fp16 ? of_bf16 / of_fp16 : of_fp16 / of_bf16;
  return fmt::format("{} is nearer than {}, {}.", is_fp16 ? "FP16" : "BF16", is_fp16 ? "BF16" : "FP16",
                     std::isfinite(ratio) ? fmt::format("by {:.3g} times", ratio) : "and exact");
}

std::string flushed_sentence(const Findings& found) {
  double inputs = 0, results = 0;
  for (const Reduced& kind : found.kinds) {
    inputs = std::max(inputs, found.share_of_inputs(kind.inputs_flushed));
    results = std::max(results, kind.loss.fraction_flushed());
  }
  std::vector<std::string> sentences;
  if (inputs > 0)
    sentences.push_back(
        fmt::format("Rounding to what is sent and dividing make up to {} of the ranks' non-zero values zero.",
                    percent(inputs)));
  if (results > 0)
    sentences.push_back(fmt::format("Up to {} of the means become zero that are not.", percent(results)));
  return fmt::format("{}", fmt::join(sentences, " "));
}

/// What the others are said of, where elements are left out of it.
std::string exclusion_sentence(const Findings& found) {
  const std::uint64_t nonfinite = found.nonfinite_places, beyond = found.first_rounding.places_beyond;
  if (nonfinite + beyond == 0 || found.places_left() == 0) return {};
  std::vector<std::string> reasons;
  if (nonfinite > 0) reasons.push_back(fmt::format("NaN or infinite at some rank already: {}", nonfinite));
  if (beyond > 0)
    reasons.push_back(fmt::format("beyond FP32, to which values are rounded first: {}", beyond));
  return fmt::format("This is of the {} of {} elements that are finite at every rank. Left out, as {}.",
                     found.places_left(), found.elements, fmt::join(reasons, ", and as "));
}

/// What FP32 does not hold of the files' values.
std::string first_rounding_sentence(const Findings& found) {
  const FirstRounding& first = found.first_rounding;
  if (first.error_squares.is_zero()) return {};
  std::string sentence = fmt::format(
      "Rounding the files' values to FP32 first loses {} of their norm, which no "
      "error above counts",
      percent(first.relative_error()));
  if (first.flushed > 0)
    sentence += fmt::format(": {} of {} non-zero values become zero", first.flushed,
                            found.nonzero_inputs + first.flushed);
  return sentence + ".";
}

std::string inputs_sentence(const Findings& found) {
  std::string sentence;
  for (const Sent& format : found.sent) {
    if (found.is_asked(format) && format.overflow > 0)
      sentence += fmt::format("{}{} values of the ranks are beyond {} before anything is added.",
                              sentence.empty() ? "" : " ", format.overflow, format.name);
  }
  return sentence;
}

/// Where the exact mean is zero everywhere, so that no error has a share of it.
std::string answer_of_zero(const Findings& found) {
  if (found.elements == 0) return "There is nothing to lose: the tensors are empty.";
  if (found.nonfinite_places == found.elements)
    return "It cannot be told: every element is NaN or infinite at some rank already.";
  if (found.places_left() == 0)
    return fmt::format(
        "It cannot be told: no element is finite at every rank, {} of {} since FP32, to which values are "
        "rounded first, does not hold them.",
        found.first_rounding.places_beyond, found.elements);
  const auto norm = [](const Reduced& kind) { return kind.loss.run_norm(); };
  const Reduced& worst = *std::ranges::max_element(found.kinds, {}, norm);
  if (norm(worst) == 0 && found.first_rounding.flushed > 0)
    return "It cannot be told: of what FP32 holds of the ranks' values the mean is zero everywhere.";
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
  if (std::string sentence = nearer_sentence(found); !sentence.empty())
    sentences.push_back(std::move(sentence));
  std::vector<std::string> once;
  for (const Sent& format : found.sent) {
    if (!found.is_told(format)) continue;
    const sim::TwinComparison& loss = format.one_rounding;
    once.push_back(fmt::format("to {} costs {}", format.name,
                               loss.nonfinite > 0 ? "an overflow" : percent(loss.relative_error())));
  }
  sentences.push_back(fmt::format("Rounding the exact mean once {}.", fmt::join(once, ", ")));
  return sentences;
}

std::string answer(const Findings& found) {
  std::vector<std::string> sentences = found.halves().one_rounding.nonzero > 0
                                           ? answers_of_nonzero(found)
                                           : std::vector{answer_of_zero(found)};
  if (const std::string sentence = exclusion_sentence(found); !sentence.empty())
    sentences.insert(sentences.begin(), sentence);
  for (const std::string& sentence :
       {flushed_sentence(found), first_rounding_sentence(found), inputs_sentence(found), found.remark})
    if (!sentence.empty()) sentences.push_back(sentence);
  return fmt::format("{}", fmt::join(sentences, " "));
}

/// "a.npy, b.npy, ..., h.npy", so that a shell's order of names is seen.
std::string ranks_in_order(const std::vector<std::string>& paths) {
  constexpr std::size_t most = 6;
  if (paths.size() <= most) return fmt::format("{}", fmt::join(paths, ", "));
  return fmt::format("{}, ..., {}", fmt::join(std::span(paths).first(most - 2), ", "), paths.back());
}

/// The precisions that were asked for, in the order of the table's columns.
std::vector<sim::AllReducePrecision> precisions_of(const Findings& found) {
  std::vector<sim::AllReducePrecision> precisions;
  for (const Reduced& kind : found.kinds)
    if (std::ranges::find(precisions, kind.how.precision) == precisions.end())
      precisions.push_back(kind.how.precision);
  return precisions;
}

TextTable error_table(const Findings& found) {
  TextTable table{
      .columns = {"error of the order"},
      .rows = {},
      .notes = {fmt::format("error: ||mean - exact mean|| / ||exact mean||, of {} ranks, {} elements "
                            "in {}, each its own message; division by {}: {}.",
                            found.ranks, found.elements, counted(found.tensors, "tensor"), found.ranks,
                            sim::name_of(found.kinds.front().how.division)),
                fmt::format("Ranks, in this order: {}.", ranks_in_order(found.paths))}};
  const auto precisions = precisions_of(found);
  for (const sim::AllReducePrecision precision : precisions)
    table.columns.push_back(fmt::format("in {}", sim::name_of(precision)));
  for (std::size_t i = 0; i < found.kinds.size(); ++i) {
    if (i % precisions.size() == 0)
      table.rows.push_back({std::string(sim::name_of(found.kinds[i].how.algorithm))});
    table.rows.back().push_back(error_text(found.kinds[i]));
  }
  std::vector<std::string_view> lossy;
  for (const Sent& format : found.sent)
    if (found.is_asked(format) && !format.holds_all) lossy.push_back(format.name);
  if (!lossy.empty())
    table.notes.push_back(
        fmt::format("The files hold more than {}: the ranks' values are rounded to what is sent first, as a "
                    "compressing hook does, and that loss is counted.",
                    fmt::join(lossy, " and ")));
  return table;
}

/// What becomes of values by precision: in the order that loses most.
TextTable loss_table(const Findings& found) {
  TextTable table{
      .columns = {"at most, in the worst order", "ranks' values flushed", "mean flushed", "mean overflows"},
      .rows = {},
      .notes = {"flushed: non-zero and becomes zero; overflows: elements of the mean."}};
  for (const sim::AllReducePrecision precision : precisions_of(found)) {
    double inputs = 0, mean = 0;
    std::uint64_t overflowed = 0;
    for (const Reduced& kind : found.kinds) {
      if (kind.how.precision != precision) continue;
      inputs = std::max(inputs, found.share_of_inputs(kind.inputs_flushed));
      mean = std::max(mean, kind.loss.fraction_flushed());
      overflowed = std::max<std::uint64_t>(overflowed, kind.loss.nonfinite);
    }
    table.rows.push_back({fmt::format("in {}", sim::name_of(precision)), percent(inputs), percent(mean),
                          fmt::format("{}", overflowed)});
  }
  return table;
}

}  // namespace

Outputs outputs() {
  return outputs_of(kinds_table, summary, bfloat16_summary, kinds_summary);
}

void report(Run& run, const Findings& found) {
  RunRecord& record = run.record();
  const auto add = kinds_table.start(record);
  for (const Reduced& kind : found.kinds) add({found, kind});
  summary.write(record, found);
  if (found.is_asked(found.sent.back())) bfloat16_summary.write(record, found.sent.back());
  for (const Reduced& kind : found.kinds)
    kinds_summary.write(record, kind, {sim::name_of(kind.how.algorithm), sim::name_of(kind.how.precision)});
  if (run.draws()) draw_figure(run, found);
  record.verdict(answer(found));
  record.verdict(error_table(found).text());
  record.verdict(loss_table(found).text());
}

}  // namespace halflab::allreduce
