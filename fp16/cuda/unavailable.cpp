/// Linked in place of the device code where there is no CUDA.

#include <stdexcept>

#include "fp16/cuda/kernels.h"
#include "fp16/cuda/sweep.h"

namespace fp16::cuda {

namespace {

[[noreturn]] void refuse() {
  throw std::runtime_error(unavailable_reason());
}

}  // namespace

std::string unavailable_reason() {
  return "no CUDA device: this program was built without CUDA";
}

Device device() {
  refuse();
}
SweepResult run(const Sweep&, std::uint32_t) {
  refuse();
}
std::vector<std::vector<std::uint16_t>> tabulate(const TabulatedFunction&) {
  refuse();
}
std::uint16_t sum_blocked_tree(std::span<const std::uint16_t>) {
  refuse();
}
std::uint16_t dot_blocked_tree(std::span<const std::uint16_t>, std::span<const std::uint16_t>) {
  refuse();
}
void gemm_fma_chain(const HalfProduct&) {
  refuse();
}
void mma(const MmaTiles<float>&) {
  refuse();
}
void mma(const MmaTiles<std::uint16_t>&) {
  refuse();
}

}  // namespace fp16::cuda
