#include "experiments/opt_levels/memory.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

namespace experiments::opt_levels {

std::uint64_t held_bytes(const sim::MemoryAccount& memory) {
  std::uint64_t bytes = 0;
  for (const sim::MemoryRole role : sim::memory_roles) {
    if (role != sim::MemoryRole::temporaries) bytes += memory.peak_bytes(role);
  }
  return bytes;
}

std::uint64_t measured_bytes(const TrainingSetup& setup, const Recipe& recipe, int batch,
                             const sim::DataParallel& parallel) {
  sim::AnyScaler scaler = recipe.make_scaler();
  if (std::holds_alternative<std::unique_ptr<sim::LossScaler>>(scaler)) scaler = sim::make_scaler("none");
  TrainingBudget budget = setup.budget();
  budget.batch = batch;
  sim::Trainer trainer = setup.trainer({.parallel = parallel}, recipe.policy, std::move(scaler), budget);
  trainer.step();
  return held_bytes(trainer.memory());
}

BatchBytes largest_batch(std::uint64_t budget, int limit, const std::function<std::uint64_t(int)>& bytes_of) {
  BatchBytes fits{.batch = 1, .bytes = bytes_of(1)};
  if (fits.bytes > budget) return {};
  BatchBytes exceeds;
  const auto look_at = [&](int batch) {
    const BatchBytes next{.batch = batch, .bytes = bytes_of(batch)};
    (next.bytes <= budget ? fits : exceeds) = next;
  };
  while (exceeds.batch == 0) {
    if (fits.batch == limit) return fits;
    look_at(std::min(2 * fits.batch, limit));
  }
  while (exceeds.batch - fits.batch > 1) {
    // The batch at which a straight line through both leaves the budget.
    const double share =
        static_cast<double>(budget - fits.bytes) / static_cast<double>(exceeds.bytes - fits.bytes);
    const int between = fits.batch + static_cast<int>(share * (exceeds.batch - fits.batch));
    look_at(std::clamp(between, fits.batch + 1, exceeds.batch - 1));
  }
  return fits;
}

}  // namespace experiments::opt_levels
