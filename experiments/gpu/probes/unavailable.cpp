/// Linked in place of the device code where there is no CUDA.

#include <stdexcept>

#include "experiments/gpu/probes/fma_sweep.h"
#include "experiments/gpu/probes/sweep.h"
#include "experiments/gpu/probes/tensor_core.h"
#include "fp16/cuda/device.h"

namespace experiments::probes {

namespace {

[[noreturn]] void refuse() {
  throw std::runtime_error(cuda::unavailable_reason());
}

}  // namespace

SweepResult run(const Sweep&, std::uint32_t, Range) {
  refuse();
}
std::vector<std::uint64_t> answers_at(const Sweep&, std::span<const std::uint64_t>) {
  refuse();
}
FmaSweepResult run_fma(std::uint16_t, std::uint32_t, std::uint32_t) {
  refuse();
}
std::vector<std::vector<std::uint16_t>> tabulate(const TabulatedFunction&) {
  refuse();
}
std::string unavailable_reason(const TensorCoreInstruction&) {
  return cuda::unavailable_reason();
}
TensorCoreResult run(const TensorCoreInstruction&, const InputFamily&, const DotRange&, const TensorCore&) {
  refuse();
}

}  // namespace experiments::probes
