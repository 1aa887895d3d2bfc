#pragma once
/// Whether a training run fits into memory, said before its first step.

#include <fmt/format.h>

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include "sim/models/model.h"
#include "sim/precision/precision_policy.h"
#include "sim/tensor/available_memory.h"
#include "sim/trainer/memory_forecast.h"

namespace experiments {

/// "5.21 GiB", "310 MiB".
std::string bytes_text(std::uint64_t bytes);

/// What the parameters of a model take before anything else does: themselves, the optimizer's state and gradients,
/// scaled and unscaled. Nothing is allocated for it but small probes of the optimizer's state.
std::uint64_t parameter_bytes(const sim::Model& model, const sim::PrecisionPolicy& policy,
                              std::string_view optimizer);

/// A run as errors name it, and what it is to fit into.
struct MemoryDemand {
  std::string run;  ///< "mlp under amp"
  std::uint64_t batch;
  std::uint64_t side_by_side = 1;  ///< runs of its kind at one time
  sim::AvailableMemory available;
};

/// Both throw std::runtime_error, in one line with what is needed, what there is and what would fit, where a run does
/// not fit: `bytes` for its parameters alone, or the tensors of its steps.
void require_parameters_fit(const MemoryDemand& demand, std::uint64_t bytes);
void require_steps_fit(const MemoryDemand& demand, const sim::MemoryForecast& forecast);

/// What `body` returns. Where memory runs out in it, throws std::runtime_error with what was being done: "reading
/// --data 'x'".
template <class Body>
decltype(auto) while_doing(const std::string& what, Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    throw std::runtime_error(fmt::format("memory ran out while {}", what));
  }
}

}  // namespace experiments
