#include "experiments/common/instruments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "experiments/common/training_setup.h"
#include "sim/statistics/log2.h"

namespace experiments {
namespace {

enum class Cure { smaller_scale, none, not_needed };

struct CureRow {
  Cure cure;
  std::string_view text;
};
constexpr std::array cures{CureRow{Cure::smaller_scale, "for its scale"},
                           CureRow{Cure::none, "that no scale would have saved"},
                           CureRow{Cure::not_needed, "by its scaler's own rule"}};

Cure cure_of(const sim::SkipRecord& skip) {
  if (skip.place == sim::SkipRecord::Place::nowhere) return Cure::not_needed;
  return skip.is_scale_dependent() ? Cure::smaller_scale : Cure::none;
}

}  // namespace

void write_steps(sim::RunRecord& record, std::span<const InstrumentedRun> runs) {
  sim::Table& table = record.table(
      "steps", {"strategy", "seed", "step", "loss", "scale_log2", "skipped", "measured", "fraction_flushed",
                "fraction_flushed_at_cast", "fraction_subnormal", "fraction_overflow", "norm_share_flushed",
                "relative_error", "cosine", "sign_agreement"});
  for (const InstrumentedRun& run : runs) {
    for (const sim::StepRecord& step : run.steps) {
      const bool measured = !step.twin.empty();
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

void write_layers(sim::RunRecord& record, std::span<const InstrumentedRun> runs) {
  sim::Table& table = record.table("layers", {"strategy",
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

void write_skips(sim::RunRecord& record, std::span<const InstrumentedRun> runs) {
  sim::Table& table = record.table(
      "skips", {"strategy", "seed", "step", "decision", "scale_log2", "place", "operation", "layer",
                "consumer", "element", "index", "value", "tensor_scale_log2", "twin_value", "twin_exponent",
                "scaled_twin_log2", "twin_finite", "scale_dependent"});
  for (const InstrumentedRun& run : runs) {
    for (const sim::StepRecord& step : run.steps) {
      if (!step.skip) continue;
      const sim::SkipRecord& skip = *step.skip;
      table.row({run.strategy, run.seed, step.step, sim::name_of(step.decision),
                 sim::log2_of(skip.loss_scale), sim::name_of(skip.place), skip.operation, skip.layer,
                 skip.consumer, skip.element, fmt::format("{}", fmt::join(skip.index, " ")), skip.value,
                 sim::log2_of(skip.tensor_scale), skip.twin_value, skip.twin_exponent(), skip.log2_scaled(),
                 int{skip.twin_finite}, int{skip.is_scale_dependent()}});
    }
  }
}

void write_statistics(sim::RunRecord& record, std::span<const InstrumentedRun> runs) {
  sim::Table& statistics =
      record.table("statistics", {"strategy", "seed", "step", "tensor", "kind", "scale_log2", "total", "zero",
                                  "subnormal", "infinite", "nan", "rounded_inexact", "rounded_to_subnormal",
                                  "rounded_to_zero", "rounded_to_infinity", "norm", "octaves_alive"});
  sim::Table& exponents =
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

std::string skips_paragraph(std::span<const InstrumentedRun> runs) {
  std::vector<std::string> sentences;
  for (const auto& [cure, text] : cures) {
    std::size_t count = 0;
    std::string first;
    for (const InstrumentedRun& run : runs) {
      for (const sim::StepRecord& step : run.steps) {
        if (!step.skip || cure_of(*step.skip) != cure) continue;
        if (count++ == 0)
          first = fmt::format("{}, seed {}. {}", run.strategy, run.seed, describe(*step.skip));
      }
    }
    if (count > 0) sentences.push_back(fmt::format("Skipped {}: {}, the first under {}", text, count, first));
  }
  return fmt::format("{}", fmt::join(sentences, " "));
}

std::string weakest_layer_sentence(const InstrumentedRun& run) {
  const auto first = std::ranges::find_if(run.steps, [](const auto& step) { return !step.twin.empty(); });
  if (first == run.steps.end()) return {};
  constexpr double out_of_question = std::numeric_limits<double>::infinity();
  const auto octaves = [](const sim::TwinComparison& site) {
    return site.is_rounding_noise || site.nonzero == 0 ? out_of_question : site.octaves_alive();
  };
  const auto weakest = std::ranges::min_element(first->twin, {}, octaves);
  if (octaves(*weakest) == out_of_question) return {};
  const auto site = static_cast<std::size_t>(weakest - first->twin.begin());
  return fmt::format("Why: at step {} and S = 1 {}.", first->step,
                     octaves_alive_clause(run.sites[site].name, weakest->octaves_alive()));
}

std::string abort_sentence(std::string_view strategy, std::uint64_t seed, std::size_t steps,
                           std::string_view reason) {
  return fmt::format("{}, seed {}, made {} step{} and was ended by its scaler: {}", strategy, seed, steps,
                     steps == 1 ? "" : "s", reason);
}

void write_estimate(sim::RunRecord& record, const std::string& key, const Estimate& value) {
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
