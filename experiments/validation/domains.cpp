#include "experiments/validation/domains.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "experiments/validation/double_oracle.h"
#include "fp16/cuda/mix.h"

namespace experiments::validation {
namespace {

std::uint16_t code_of(std::uint32_t index) {
  return static_cast<std::uint16_t>(index);
}

/// The number of `code`, or the midpoint between it and the next one farther from zero. Beyond the largest
/// number lies 65536.
double boundary(std::uint32_t code, bool midpoint) {
  const auto value_or_limit = [](std::uint32_t any) {
    const double sign = any & 0x8000 ? -1 : 1;
    return (any & 0x7FFF) == 0x7C00 ? sign * 65536 : double_oracle::decode(code_of(any));
  };
  if (!midpoint) return double_oracle::decode(code_of(code));
  return (code & 0x7FFF) >= 0x7C00 ? value_or_limit(code)
                                   : 0.5 * (value_or_limit(code) + value_or_limit(code + 1));
}

}  // namespace

std::uint64_t trials::random_bits(std::uint32_t shard, std::uint32_t index, std::uint64_t stream) {
  const std::uint64_t number = (std::uint64_t{shard} << 32 | index) * 4 + stream;
  return fp16::cuda::mix((number + 1) * std::uint64_t{0x9E3779B97F4A7C15});
}

Operands trials::code(std::uint32_t, std::uint32_t index) {
  return {.a = index};
}
Operands trials::pair(std::uint32_t shard, std::uint32_t index) {
  return {.a = shard, .b = index};
}
Operands trials::single(std::uint32_t shard, std::uint32_t index) {
  return {.a = std::uint64_t{index} << 16 | shard};
}
Operands trials::word(std::uint32_t shard, std::uint32_t index) {
  return {.a = std::uint64_t{shard} << 16 | index};
}

Operands trials::double_point(std::uint32_t shard, std::uint32_t index) {
  if (shard < 6) {
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(boundary(index, shard >= 3));
    const std::uint64_t sign = std::uint64_t{1} << 63;
    const bool below_zero = (bits & ~sign) == 0 && shard % 3 == 0;
    return {.a = below_zero ? (bits ^ sign) | 1 : bits + shard % 3 - 1};
  }
  const std::uint64_t random = random_bits(shard, index, 0);
  if (index % 2 == 0) return {.a = random};
  constexpr std::uint64_t fields = ((std::uint64_t{1} << 52) - 1) | std::uint64_t{1} << 63;
  const std::uint64_t exponent = 1023 - 27 + random_bits(shard, index, 1) % 45;
  return {.a = (random & fields) | exponent << 52};
}

Operands trials::long_word(std::uint32_t shard, std::uint32_t index) {
  if (shard < 6) {
    const double value = boundary(index, shard >= 3);
    if (!std::isfinite(value)) {  // the ends of the range stand in the place of what no integer is
      const std::uint64_t end = value < 0 ? std::uint64_t{1} << 63 : std::uint64_t{index & 1} << 63;
      return {.a = end + shard % 3 - 1};
    }
    return {.a = static_cast<std::uint64_t>(static_cast<std::int64_t>(std::floor(value))) + shard % 3 - 1};
  }
  const auto length = static_cast<int>(random_bits(shard, index, 1) % 64);
  const std::uint64_t magnitude = random_bits(shard, index, 0) >> length;
  return {.a = index % 2 == 0 ? magnitude : -magnitude};
}

/// a and b are anything; c is anything, or near -a * b, or near the half of a unit of it, or smaller by so
/// many octaves that it only decides a tie.
Operands trials::triple(std::uint32_t shard, std::uint32_t index) {
  const std::uint64_t random = random_bits(shard, index, 0);
  const auto a = static_cast<std::uint16_t>(random), b = static_cast<std::uint16_t>(random >> 16);
  const auto c = static_cast<std::uint16_t>(random >> 32);
  const auto offset = static_cast<int>(random >> 48 & 7) - 4;
  const double product = double_oracle::decode(a) * double_oracle::decode(b);
  const auto near = [&](double value) {
    return static_cast<std::uint16_t>(double_oracle::encode(value) + offset);
  };
  switch (random >> 61) {
    case 0:
    case 1:
      return {.a = a, .b = b, .c = near(-product)};
    case 2:
      return {.a = a, .b = b, .c = near(product * 0x1p-11)};
    case 3:
      return {.a = a, .b = b, .c = near(product * 0x1p11)};
    case 4:
      return {.a = a, .b = b, .c = near(product * -0x1p11)};
    case 5: {
      const auto tie = static_cast<std::uint16_t>((a & 0xFC00) | (1 << (offset + 4)));
      return {.a = tie, .b = b, .c = c};
    }
    case 6:
      return {.a = a, .b = b, .c = static_cast<std::uint64_t>(c & 0x8003)};
    default:
      return {.a = a, .b = b, .c = c};
  }
}

std::vector<std::uint32_t> borders::none() {
  return {0};
}

/// Numbers with an odd last digit, zeros, the borders of the subnormal, normal and infinite numbers with
/// their neighbours, one, and NaNs of both kinds; of both signs, and first one of each kind.
std::vector<std::uint32_t> borders::codes() {
  return {0x3C01, 0xB555, 0x0001, 0x8000, 0x7BFF, 0xFC00, 0x7E00, 0x83FF, 0xBC01, 0x3555,
          0x8001, 0x0000, 0xFBFF, 0x7C00, 0xFE00, 0x03FF, 0x0400, 0x8400, 0x0401, 0x8401,
          0x3BFF, 0xBBFF, 0x3C00, 0xBC00, 0x7C01, 0xFC01, 0x7FFF, 0xFFFF};
}

/// The upper three bits of a binary32 code's lower half belong to the binary16 significand; the other
/// thirteen lie below, at and above a neighbour and a midpoint.
std::vector<std::uint32_t> borders::lower_halves() {
  std::vector<std::uint32_t> shards;
  for (std::uint32_t kept = 0; kept < 8; ++kept) {
    for (std::uint32_t rest : {0x0000, 0x0001, 0x0FFF, 0x1000, 0x1001, 0x1FFF})
      shards.push_back(kept << 13 | rest);
  }
  return shards;
}

std::vector<std::uint32_t> borders::upper_halves() {
  return {0x0000, 0x0001, 0x0002, 0x7FFF, 0x8000, 0xFFFD, 0xFFFE, 0xFFFF};
}

std::vector<std::uint32_t> borders::points() {
  std::vector<std::uint32_t> shards(6);
  std::iota(shards.begin(), shards.end(), 0U);
  return shards;
}

std::vector<std::uint32_t> sampled_shards(const Domain& domain, std::uint64_t samples) {
  const std::uint64_t whole = samples / domain.shard_size + (samples % domain.shard_size != 0);
  const auto wanted = std::clamp<std::uint64_t>(whole, 1, domain.shard_count);
  std::vector<std::uint32_t> chosen;
  std::vector<bool> taken(domain.shard_count);
  const auto take = [&](std::uint32_t shard) {
    if (chosen.size() == wanted || taken[shard]) return;
    taken[shard] = true;
    chosen.push_back(shard);
  };
  for (const std::uint32_t shard : domain.boundary_shards()) take(shard);
  // An odd step near the golden section meets every shard of a power of two once, evenly spread.
  const std::uint64_t step = std::has_single_bit(domain.shard_count) ? 40503 : 1;
  for (std::uint64_t k = 0; k < domain.shard_count && chosen.size() < wanted; ++k)
    take(static_cast<std::uint32_t>(k * step % domain.shard_count));
  return chosen;
}

}  // namespace experiments::validation
