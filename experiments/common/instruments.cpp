#include "experiments/common/instruments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

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

std::string_view name_of(sim::Decision decision) {
  return decision == sim::Decision::abort ? "abort" : "skip";
}

}  // namespace

void write_skips(sim::RunRecord& record, std::span<const InstrumentedRun> runs) {
  sim::Table& table = record.table(
      "skips", {"strategy", "seed", "step", "decision", "scale_log2", "place", "operation", "layer",
                "consumer", "element", "index", "value", "tensor_scale_log2", "twin_value", "twin_exponent",
                "scaled_twin_log2", "twin_finite", "scale_dependent"});
  for (const InstrumentedRun& run : runs) {
    for (const sim::StepRecord& step : run.steps) {
      if (!step.skip) continue;
      const sim::SkipRecord& skip = *step.skip;
      table.row({run.strategy, run.seed, step.step, name_of(step.decision), sim::log2_of(skip.loss_scale),
                 sim::name_of(skip.place), skip.operation, skip.layer, skip.consumer, skip.element,
                 fmt::format("{}", fmt::join(skip.index, " ")), skip.value, sim::log2_of(skip.tensor_scale),
                 skip.twin_value, skip.twin_exponent(), skip.log2_scaled(), int{skip.twin_finite},
                 int{skip.is_scale_dependent()}});
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

std::vector<std::pair<std::string, std::size_t>> peak_tensor_bytes(const sim::MemoryAccount& memory) {
  std::vector<std::pair<std::string, std::size_t>> peaks{{"peak_tensor_bytes", memory.peak_bytes()}};
  for (const sim::MemoryRole role : sim::memory_roles)
    peaks.emplace_back(fmt::format("peak_tensor_bytes_{}", sim::name_of(role)), memory.peak_bytes(role));
  return peaks;
}

}  // namespace experiments
