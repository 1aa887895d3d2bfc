#include "sim/tensor/fingerprint.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace sim {
namespace {

constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio

/// One-to-one in either argument while the other stays.
std::uint64_t mixed(std::uint64_t state, std::uint64_t bits) {
  return std::rotl(state ^ bits, 29) * odd;
}

std::uint64_t bits_of(double value) {
  return std::bit_cast<std::uint64_t>(std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value);
}

}  // namespace

void Fingerprint::add(const Tensor& tensor) {
  std::array<double, 1024> buffer;
  for (std::size_t first = 0; first < tensor.size(); first += buffer.size()) {
    const std::size_t count = std::min(buffer.size(), tensor.size() - first);
    const double* const values = read(tensor, first, count, buffer);
    for (std::size_t i = 0; i < count; ++i) state_ = mixed(state_, bits_of(values[i]));
  }
}

double Fingerprint::value() const {
  const std::uint64_t spread = mixed(state_ ^ state_ >> 32, 0);
  return static_cast<double>((spread ^ spread >> 29) >> 11);
}

}  // namespace sim
