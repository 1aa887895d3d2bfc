#include "sim/trainer/memory_forecast.h"

#include <algorithm>
#include <utility>

#include "sim/tensor/allocation_trace.h"

namespace sim {
namespace {

/// Bytes in use after each allocation of a step.
std::vector<std::int64_t> levels_at(std::size_t batch, const std::function<Trainer(std::size_t)>& make) {
  constexpr int most_steps = 20;
  AllocationTrace trace;
  Trainer trainer = make(batch);
  for (int i = 0; i < most_steps; ++i) {
    trace.restart();
    const Decision decision = trainer.step().decision;
    if (decision == Decision::apply || decision == Decision::abort) break;
  }
  return trace.levels();
}

}  // namespace

MemoryForecast::MemoryForecast(const std::function<Trainer(std::size_t batch)>& make, std::uint64_t ranks)
    : ranks_(ranks) {
  std::vector<std::int64_t> two = levels_at(2 * ranks, make), three = levels_at(3 * ranks, make);
  if (two.size() != three.size()) {
    two = {std::ranges::max(two)};
    three = {std::ranges::max(three)};
  }
  for (std::size_t i = 0; i < two.size(); ++i)
    levels_.push_back({.at_2 = two[i], .slope = three[i] - two[i]});
}

std::uint64_t MemoryForecast::peak_bytes(std::uint64_t batch) const {
  std::int64_t peak = 0;
  for (const auto& [at_2, slope] : levels_)
    peak = std::max(peak, at_2 + slope * (static_cast<std::int64_t>(batch / ranks_) - 2));
  return static_cast<std::uint64_t>(peak);
}

std::uint64_t MemoryForecast::largest_batch(std::uint64_t bytes, std::uint64_t most) const {
  std::uint64_t fits = 0, too_large = most / ranks_ + 1;  // examples of a rank
  while (too_large - fits > 1) {
    const std::uint64_t middle = fits + (too_large - fits) / 2;
    (peak_bytes(middle * ranks_) <= bytes ? fits : too_large) = middle;
  }
  return fits * ranks_;
}

}  // namespace sim
