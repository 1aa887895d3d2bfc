#include "experiments/training/instruments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "experiments/training/counted_gradients.h"
#include "experiments/training/gradient_sites.h"
#include "sim/tensor/log2.h"

namespace experiments {
namespace {

/// The kind of a skip as an index of skip_kinds.
std::size_t kind_of(const sim::SkipRecord& skip) {
  if (skip.place == sim::SkipRecord::Place::nowhere) return 2;
  return skip.is_scale_dependent() ? 0 : 1;
}

bool is_measured(const sim::StepRecord& step) {
  return !step.twin.empty();
}

template <class Cell>
std::vector<Cell> joined(std::vector<Cell> first, const std::vector<Cell>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

void write_steps(RunRecord& record, std::span<const InstrumentedRun> runs) {
  Table& table = record.table(
      "steps", {"strategy", "seed", "step", "loss", "scale_log2", "skipped", "measured", "fraction_flushed",
                "fraction_flushed_at_cast", "fraction_subnormal", "fraction_overflow", "norm_share_flushed",
                "relative_error", "cosine", "sign_agreement"});
  for (const InstrumentedRun& run : runs) {
    for (const sim::StepRecord& step : run.steps) {
      const bool measured = is_measured(step);
      const sim::TwinComparison total = sim::total_of(step.twin);
      const auto if_measured = [&](double value) {
        return measured ? value : std::numeric_limits<double>::quiet_NaN();
      };
      table.row({run.strategy, run.seed, step.step, step.loss, sim::log2_of(step.scale), int{step.skipped()},
                 int{measured}, if_measured(total.fraction_flushed()),
                 if_measured(total.fraction_flushed_at_cast()), if_measured(total.fraction_subnormal()),
                 if_measured(total.fraction_overflow()), if_measured(total.norm_share_flushed()),
                 if_measured(total.relative_error()), if_measured(total.cosine()),
                 if_measured(total.sign_agreement())});
    }
  }
}

void write_layers(RunRecord& record, std::span<const InstrumentedRun> runs) {
  Table& table = record.table("layers", {"strategy",
                                         "seed",
                                         "step",
                                         "tensor",
                                         "kind",
                                         "octaves_alive",
                                         "fraction_flushed",
                                         "norm_share_flushed",
                                         "fraction_overflow",
                                         "relative_error",
                                         "cosine",
                                         "sign_agreement",
                                         "native_zero",
                                         "flushed_at_cast",
                                         "subnormal",
                                         "infinite",
                                         "nan",
                                         "twin_norm",
                                         "run_norm",
                                         "is_rounding_noise"});
  for (const InstrumentedRun& run : runs) {
    for (const sim::StepRecord& step : run.steps) {
      for (std::size_t i = 0; i < step.twin.size(); ++i) {
        const sim::TwinComparison& site = step.twin[i];
        table.row({run.strategy,
                   run.seed,
                   step.step,
                   run.sites[i].name,
                   sim::name_of(run.sites[i].kind),
                   site.octaves_alive(),
                   site.fraction_flushed(),
                   site.norm_share_flushed(),
                   site.fraction_overflow(),
                   site.relative_error(),
                   site.cosine(),
                   site.sign_agreement(),
                   site.native_zero(),
                   site.flushed_at_cast,
                   site.subnormal,
                   site.infinite(),
                   site.nan,
                   site.twin_norm(),
                   site.run_norm(),
                   int{site.is_rounding_noise}});
      }
    }
  }
}

void write_skips(RunRecord& record, std::span<const InstrumentedRun> runs) {
  Table& table = record.table("skips", joined<std::string>({"strategy", "seed"}, skip_columns()));
  for (const InstrumentedRun& run : runs) {
    for (const sim::StepRecord& step : run.steps) {
      if (step.skip) table.row(joined<Value>({run.strategy, run.seed}, skip_cells(step)));
    }
  }
}

const std::vector<std::string>& skip_columns() {
  static const std::vector<std::string> columns{
      "step",          "decision",         "scale_log2",  "place",          "operation",         "layer",
      "consumer",      "element",          "index",       "value",          "tensor_scale_log2", "twin_value",
      "twin_exponent", "scaled_twin_log2", "twin_finite", "scale_dependent"};
  return columns;
}

std::vector<Value> skip_cells(const sim::StepRecord& step) {
  const sim::SkipRecord& skip = *step.skip;
  const auto if_twin = [&](auto value) { return skip.has_twin_value() ? Value(value) : Value(""); };
  return {step.step,
          sim::name_of(step.decision),
          sim::log2_of(skip.loss_scale),
          sim::name_of(skip.place),
          skip.operation,
          skip.layer,
          skip.consumer,
          skip.element,
          fmt::format("{}", fmt::join(skip.index, " ")),
          skip.value,
          sim::log2_of(skip.tensor_scale),
          if_twin(skip.twin_value),
          if_twin(skip.twin_exponent()),
          if_twin(skip.log2_scaled()),
          int{skip.twin_finite},
          int{skip.is_scale_dependent()}};
}

void write_parameters(RunRecord& record, std::span<const InstrumentedRun> runs) {
  Table& table = record.table("parameters", {"strategy", "seed", "parameter", "updates", "swallowed"});
  for (const InstrumentedRun& run : runs) {
    std::vector<sim::UpdateCounts> sums(run.parameters.size());
    for (const sim::StepRecord& step : run.steps) add_updates(sums, step);
    for (std::size_t i = 0; i < sums.size(); ++i)
      table.row({run.strategy, run.seed, run.parameters[i].name, sums[i].updates, sums[i].swallowed});
  }
}

void add_updates(std::vector<sim::UpdateCounts>& sums, const sim::StepRecord& step) {
  for (std::size_t i = 0; i < step.parameter_updates.size(); ++i) sums[i] += step.parameter_updates[i];
}

void TwinSums::add(const sim::StepRecord& step) {
  if (!is_measured(step) || step.skipped()) return;
  const sim::TwinComparison twin = sim::total_of(step.twin);
  ++steps;
  fraction_flushed += twin.fraction_flushed();
  norm_share_flushed += twin.norm_share_flushed();
  relative_error += twin.relative_error();
}

names::NamedValues TwinSums::means() const {
  return {{"mean_fraction_flushed", fraction_flushed / steps},
          {"mean_norm_share_flushed", norm_share_flushed / steps},
          {"mean_relative_error", relative_error / steps}};
}

void write_statistics(RunRecord& record, std::span<const InstrumentedRun> runs) {
  Table& statistics =
      record.table("statistics", {"strategy", "seed", "step", "tensor", "kind", "scale_log2", "total", "zero",
                                  "subnormal", "infinite", "nan", "rounded_inexact", "rounded_to_subnormal",
                                  "rounded_to_zero", "rounded_to_infinity", "norm", "octaves_alive"});
  Table& exponents =
      record.table("exponents", {"strategy", "seed", "step", "tensor", "kind", "exponent", "count"});
  for (const InstrumentedRun& run : runs) {
    for (const sim::StepRecord& step : run.steps) {
      for (std::size_t i = 0; i < step.statistics.size(); ++i) {
        const sim::SiteStatistics& s = step.statistics[i];
        const sim::GradientSite& site = run.sites[i];
        const std::string_view kind = sim::name_of(site.kind);
        statistics.row({run.strategy, run.seed, step.step, site.name, kind, sim::log2_of(s.scale), s.total(),
                        s.zero(), s.subnormal(), s.infinite(), s.nan(), s.rounding.inexact,
                        s.rounding.subnormal, s.rounding.flushed, s.rounding.overflowed, s.norm(),
                        s.octaves_alive()});
        if (!s.exponents.lowest_exponent()) continue;
        for (int e = *s.exponents.lowest_exponent(); e <= *s.exponents.highest_exponent(); ++e) {
          if (const std::uint64_t count = s.exponents.octave(e).total)
            exponents.row({run.strategy, run.seed, step.step, site.name, kind, e, count});
        }
      }
    }
  }
}

void SkipTally::add(const sim::StepRecord& step) {
  if (!step.skip) return;
  Kind& kind = kinds[kind_of(*step.skip)];
  if (kind.count++ == 0) kind.first = describe(*step.skip);
}

std::string skips_paragraph(std::span<const TalliedRun> runs) {
  std::vector<std::string> sentences;
  for (std::size_t kind = 0; kind < skip_kinds.size(); ++kind) {
    std::size_t count = 0;
    std::string first;
    for (const TalliedRun& run : runs) {
      const SkipTally::Kind& of_run = run.skips.kinds[kind];
      if (count == 0 && of_run.count > 0)
        first = fmt::format("{}, seed {}. {}", run.strategy, run.seed, of_run.first);
      count += of_run.count;
    }
    if (count > 0) {
      sentences.push_back(
          fmt::format("Skipped {}: {}, the first under {}", skip_kinds[kind].text, count, first));
    }
  }
  return fmt::format("{}", fmt::join(sentences, " "));
}

std::string skips_paragraph(std::span<const InstrumentedRun> runs) {
  std::vector<TalliedRun> tallied;
  for (const InstrumentedRun& run : runs) {
    tallied.push_back({.strategy = std::string(run.strategy), .seed = run.seed});
    for (const sim::StepRecord& step : run.steps) tallied.back().skips.add(step);
  }
  return skips_paragraph(tallied);
}

double scaler_twins_of(std::span<const sim::StepRecord> steps) {
  double twins = 0;
  for (const sim::StepRecord& step : steps) twins += step.scaler_twins;
  return twins;
}

std::string scaler_twins_sentence(std::span<const TwinRequests> runs) {
  std::vector<TwinRequests> sums;
  for (const TwinRequests& run : runs) {
    if (sums.empty() || sums.back().strategy != run.strategy) sums.push_back({.strategy = run.strategy});
    sums.back().twins += run.twins;
    sums.back().steps += run.steps;
  }
  std::vector<std::string> clauses;
  for (const TwinRequests& sum : sums) {
    if (sum.twins > 0)
      clauses.push_back(fmt::format("{} asked for {} twin{} in {} steps", sum.strategy, sum.twins,
                                    sum.twins == 1 ? "" : "s", sum.steps));
  }
  if (clauses.empty()) return {};
  return fmt::format("Beyond the steps themselves, {}, each one more backward pass.",
                     fmt::join(clauses, ", "));
}

std::string scaler_twins_sentence(std::span<const InstrumentedRun> runs) {
  std::vector<TwinRequests> requests;
  for (const InstrumentedRun& run : runs) {
    requests.push_back({.strategy = std::string(run.strategy),
                        .twins = scaler_twins_of(run.steps),
                        .steps = static_cast<double>(run.steps.size())});
  }
  return scaler_twins_sentence(requests);
}

std::string vanishing_sentence(const InstrumentedRun& run) {
  const auto measured = std::ranges::find_if(run.steps, is_measured);
  if (measured == run.steps.end()) return {};
  const auto nearest = nearest_to_vanishing(measured->twin);
  if (nearest == measured->twin.end() || nearest->octaves_alive() > 0) {
    return fmt::format("At step {} and S = 1 no gradient tensor's largest value is below 2^-25.",
                       measured->step);
  }
  const auto site = static_cast<std::size_t>(nearest - measured->twin.begin());
  return fmt::format("At step {} and S = 1 {}.", measured->step,
                     octaves_alive_clause(run.sites[site].name, nearest->octaves_alive()));
}

std::string abort_sentence(std::string_view strategy, std::uint64_t seed, std::size_t steps,
                           std::string_view reason) {
  return fmt::format("{}, seed {}, made {} step{} and was ended by its scaler: {}", strategy, seed, steps,
                     steps == 1 ? "" : "s", reason);
}

void write_estimate(RunRecord& record, const std::string& key, const Estimate& value) {
  record.summary(key, value.mean);
  if (value.count == 1) return;
  record.summary(key + "_std", value.deviation);
  record.summary(key + "_lower", value.lower());
  record.summary(key + "_upper", value.upper());
}

std::vector<std::pair<std::string, std::size_t>> peak_tensor_bytes(const sim::MemoryAccount& memory) {
  std::vector<std::pair<std::string, std::size_t>> peaks{{"peak_tensor_bytes", memory.peak_bytes()}};
  for (const sim::MemoryRole role : sim::memory_roles)
    peaks.emplace_back(fmt::format("peak_tensor_bytes_{}", sim::name_of(role)), memory.peak_bytes(role));
  return peaks;
}

}  // namespace experiments
