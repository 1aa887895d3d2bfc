#include "experiments/training/memory_need.h"

#include <algorithm>

#include "fp16/names.h"
#include "sim/sizing/memory_model.h"
#include "sim/trainer/model_state.h"

namespace experiments {
namespace {

/// "2 runs of mlp under amp, side by side, need".
std::string needs(const MemoryDemand& demand) {
  if (demand.side_by_side == 1) return fmt::format("{} needs", demand.run);
  return fmt::format("{} runs of {}, side by side, need", demand.side_by_side, demand.run);
}

std::string what_there_is(const MemoryDemand& demand) {
  return fmt::format("{} of memory {}", bytes_text(demand.available.bytes), demand.available.bound);
}

/// Fewer runs at one time are a way out, too.
std::string fewer_threads(const MemoryDemand& demand) {
  return demand.side_by_side == 1 ? std::string() : std::string(", or fewer runs at one time (--threads)");
}

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
  constexpr double mib = 1 << 20, gib = 1 << 30;
  const auto size = static_cast<double>(bytes);
  return size < gib ? fmt::format("{:.3g} MiB", size / mib) : fmt::format("{:.3g} GiB", size / gib);
}

std::uint64_t parameter_bytes(const sim::Model& model, const sim::PrecisionPolicy& policy,
                              std::string_view optimizer) {
  const auto size_of = [](fp16::Format format) { return static_cast<std::uint64_t>(format.size_bytes()); };
  sim::OptimizerState state(names::parse_spec(std::string(optimizer)), policy);
  std::uint64_t bytes = 0;
  for (const sim::ParameterSpec& spec : model.parameters()) {
    const std::uint64_t elements = sim::element_count(spec.shape);
    const fp16::Format seen = sim::model_format(policy, spec), kept = sim::kept_format(policy, spec);
    const std::uint64_t weights = size_of(seen) + (kept == seen ? 0 : size_of(kept));
    const std::uint64_t gradients = size_of(seen) + size_of(policy.unscaled_gradients);
    bytes += elements * (weights + gradients) + state.bytes(elements);
  }
  return bytes;
}

void require_parameters_fit(const MemoryDemand& demand, std::uint64_t bytes) {
  const std::uint64_t all = bytes * demand.side_by_side;
  if (all <= demand.available.bytes) return;
  throw std::runtime_error(fmt::format(
      "{} {} for parameters, their gradients and the optimizer alone, and {}; allowed: a smaller network{}",
      needs(demand), bytes_text(all), what_there_is(demand), fewer_threads(demand)));
}

void require_steps_fit(const MemoryDemand& demand, const sim::MemoryForecast& forecast) {
  const std::uint64_t all = forecast.peak_bytes(demand.batch) * demand.side_by_side;
  if (all <= demand.available.bytes) return;
  // Half is left for the blocks of freed tensors, which are kept for others (sim/tensor/tensor.cpp), and for what is
  // no tensor.
  const std::uint64_t largest =
      forecast.largest_batch(demand.available.bytes / 2 / demand.side_by_side, demand.batch);
  const std::uint64_t least = forecast.smallest_batch();
  const bool is_one_possible = forecast.peak_bytes(least) * demand.side_by_side <= demand.available.bytes;
  const std::string allowed =
      largest > 0       ? fmt::format("--batch up to {}", largest)
      : is_one_possible ? fmt::format("--batch {}, which leaves little room, or a smaller network", least)
                        : fmt::format("a smaller network, not even --batch {} fits", least);
  throw std::runtime_error(fmt::format("{} {} for tensors at --batch {}, and {}; allowed: {}{}",
                                       needs(demand), bytes_text(all), demand.batch, what_there_is(demand),
                                       allowed, fewer_threads(demand)));
}

}  // namespace experiments
