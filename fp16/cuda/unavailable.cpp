/// Linked in place of the device code where there is no CUDA.

#include <stdexcept>

#include "fp16/cuda/device.h"
#include "fp16/cuda/device_memory.h"
#include "fp16/cuda/gemm.h"
#include "fp16/cuda/histogram_cub.h"
#include "fp16/cuda/reductions.h"
#include "fp16/cuda/streaming.h"

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
std::uint16_t sum_blocked_tree(std::span<const std::uint16_t>) {
  refuse();
}
std::uint16_t dot_blocked_tree(std::span<const std::uint16_t>, std::span<const std::uint16_t>) {
  refuse();
}
void detail::launch_gemm(const GemmKernel&, const GemmArguments&) {
  refuse();
}
std::array<std::uint16_t, 2> sum_by_atomics(std::span<const std::uint16_t>, AtomicTarget) {
  refuse();
}
DeviceMemory::DeviceMemory(std::size_t) {
  refuse();
}
void DeviceMemory::fill(unsigned char) {
  refuse();
}
void DeviceMemory::write(const void*, std::size_t) {
  refuse();
}
void DeviceMemory::read(void*, std::size_t) const {
  refuse();
}
void copy_on_device(void*, const void*, std::size_t) {
  refuse();
}
void synchronize() {
  refuse();
}
EventTimer::EventTimer() {
  refuse();
}
double EventTimer::milliseconds() {
  refuse();
}
MemoryInfo memory_info() {
  refuse();
}
DeviceLimits device_limits() {
  refuse();
}
void float_to_half(const float*, std::uint16_t*, std::size_t) {
  refuse();
}
void half_to_float(const std::uint16_t*, float*, std::size_t) {
  refuse();
}
void unscale(const GradientList<std::uint16_t>&, float, std::uint32_t*) {
  refuse();
}
void unscale(const GradientList<float>&, float, std::uint32_t*) {
  refuse();
}
void HalfHistogram::add(const std::uint16_t*, std::size_t) {
  refuse();
}
void FloatHistogram::add(const float*, std::size_t) {
  refuse();
}
CubHalfHistogram::CubHalfHistogram(CubHistogram, std::size_t) {
  refuse();
}
void CubHalfHistogram::count(const std::uint16_t*, std::size_t) {
  refuse();
}
HalfExponents CubHalfHistogram::counts() const {
  refuse();
}

}  // namespace fp16::cuda
