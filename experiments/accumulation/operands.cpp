#include "experiments/accumulation/operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "fp16/bulk.h"
#include "fp16/elementary.h"

namespace experiments::accumulation {
namespace {

using sim::RandomStream;

float uniform(const RandomStream& stream, std::uint64_t index) {
  return stream.uniform(index);
}

float normal(const RandomStream& stream, std::uint64_t index) {
  return stream.normal(index);
}

/// A number whose log2 is uniform. The last of the 32 random bits, which `uniform` does not look at, is its sign.
float log_uniform(const RandomStream& stream, std::uint64_t index) {
  constexpr float octaves = 16, lowest = -24, ln_2 = 0x1.62e43p-1f;
  const float magnitude = fp16::exp((lowest + octaves * stream.uniform(index)) * ln_2);
  return stream.bits(index) & 1 ? -magnitude : magnitude;
}

float rectified(const RandomStream& stream, std::uint64_t index) {
  return std::max(stream.normal(index), 0.0f);
}

float weight(const RandomStream& stream, std::uint64_t index) {
  return stream.normal(index) * 0x1p-5f;
}

constexpr std::array rows{
    Distribution{"uniform", "uniform in [0, 1) x the same: all positive", uniform, uniform},
    Distribution{"normal", "normal, of variance 1 x the same", normal, normal},
    Distribution{"gradient", "sign and magnitude 2^-24 .. 2^-8, log-uniform x normal, of variance 1",
                 log_uniform, normal},
    Distribution{"relu", "max(0, normal) x normal, of deviation 1/32", rectified, weight},
};

std::vector<std::uint16_t> halves(const RandomStream& stream, decltype(Distribution::a) element,
                                  std::size_t length) {
  std::vector<float> values(length);
  for (std::size_t i = 0; i < length; ++i) values[i] = element(stream, i);
  std::vector<std::uint16_t> codes(length);
  fp16::float_to_half(values, codes);
  return codes;
}

}  // namespace

std::span<const Distribution> distributions() {
  return rows;
}

Operands draw(const Distribution& distribution, std::uint64_t seed, int vector, std::size_t length) {
  const auto stream = [&](char operand) {
    return RandomStream(seed, fmt::format("accumulation.{}.{}{}", distribution.name, operand, vector));
  };
  return {.a = halves(stream('a'), distribution.a, length), .b = halves(stream('b'), distribution.b, length)};
}

}  // namespace experiments::accumulation
