#include "experiments/gpu/validate_gpu/operands.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "experiments/gpu/validate_gpu/double_oracle.h"

namespace experiments::validate_gpu {
namespace {

constexpr std::uint32_t codes_count = 1U << 16;
constexpr std::uint64_t two_to_32 = std::uint64_t{1} << 32;

/// The finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// 2014) of a counter: every trial can be made by itself.
std::uint64_t random_bits(std::uint32_t shard, std::uint32_t index, std::uint64_t stream) {
  std::uint64_t x =
      ((std::uint64_t{shard} << 32 | index) * 4 + stream + 1) * std::uint64_t{0x9E3779B97F4A7C15};
  x = (x ^ x >> 30) * std::uint64_t{0xBF58476D1CE4E5B9};
  x = (x ^ x >> 27) * std::uint64_t{0x94D049BB133111EB};
  return x ^ x >> 31;
}

std::vector<std::uint32_t> first_only() {
  return {0};
}

/// Numbers with an odd last digit, zeros, the borders of the subnormal, normal and infinite numbers with
/// their neighbours, one, and NaNs of both kinds; of both signs, and first one of each kind.
std::vector<std::uint32_t> boundary_codes() {
  return {0x3C01, 0xB555, 0x0001, 0x8000, 0x7BFF, 0xFC00, 0x7E00, 0x83FF, 0xBC01, 0x3555,
          0x8001, 0x0000, 0xFBFF, 0x7C00, 0xFE00, 0x03FF, 0x0400, 0x8400, 0x0401, 0x8401,
          0x3BFF, 0xBBFF, 0x3C00, 0xBC00, 0x7C01, 0xFC01, 0x7FFF, 0xFFFF};
}

/// Of the lower half of a binary32 code the upper three bits belong to the binary16 significand; the other
/// thirteen lie below, at and above a neighbour and a midpoint.
std::vector<std::uint32_t> boundary_lower_halves() {
  std::vector<std::uint32_t> shards;
  for (std::uint32_t kept = 0; kept < 8; ++kept) {
    for (std::uint32_t rest : {0x0000, 0x0001, 0x0FFF, 0x1000, 0x1001, 0x1FFF})
      shards.push_back(kept << 13 | rest);
  }
  return shards;
}

std::vector<std::uint32_t> boundary_upper_halves() {
  return {0x0000, 0x0001, 0x0002, 0x7FFF, 0x8000, 0xFFFD, 0xFFFE, 0xFFFF};
}

std::vector<std::uint32_t> boundary_points() {
  std::vector<std::uint32_t> shards(6);
  std::iota(shards.begin(), shards.end(), 0U);
  return shards;
}

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

Operands double_at(std::uint32_t shard, std::uint32_t index) {
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

Operands long_word_at(std::uint32_t shard, std::uint32_t index) {
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
Operands triple_at(std::uint32_t shard, std::uint32_t index) {
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

}  // namespace

const Domain codes{.name = "codes",
                   .meaning = "all 2^16 codes",
                   .is_complete = true,
                   .operand_count = 1,
                   .shard_count = 1,
                   .shard_size = codes_count,
                   .inputs = codes_count,
                   .at = [](std::uint32_t, std::uint32_t index) { return Operands{.a = index}; },
                   .boundary_shards = first_only};
const Domain pairs{
    .name = "pairs",
    .meaning = "all 2^32 pairs of codes",
    .is_complete = true,
    .operand_count = 2,
    .shard_count = codes_count,
    .shard_size = codes_count,
    .inputs = two_to_32,
    .at = [](std::uint32_t shard, std::uint32_t index) { return Operands{.a = shard, .b = index}; },
    .boundary_shards = boundary_codes};
const Domain singles{
    .name = "singles",
    .meaning = "all 2^32 binary32 codes",
    .is_complete = true,
    .operand_count = 1,
    .shard_count = codes_count,
    .shard_size = codes_count,
    .inputs = two_to_32,
    .at = [](std::uint32_t shard,
             std::uint32_t index) { return Operands{.a = std::uint64_t{index} << 16 | shard}; },
    .boundary_shards = boundary_lower_halves};
const Domain words{
    .name = "words",
    .meaning = "all 2^32 integers",
    .is_complete = true,
    .operand_count = 1,
    .shard_count = codes_count,
    .shard_size = codes_count,
    .inputs = two_to_32,
    .at = [](std::uint32_t shard,
             std::uint32_t index) { return Operands{.a = std::uint64_t{shard} << 16 | index}; },
    .boundary_shards = boundary_upper_halves};
const Domain doubles{.name = "doubles",
                     .meaning = "below, at and above every rounding boundary, then weighted random",
                     .is_complete = false,
                     .operand_count = 1,
                     .shard_count = codes_count,
                     .shard_size = codes_count,
                     .inputs = two_to_32,
                     .at = double_at,
                     .boundary_shards = boundary_points};
const Domain long_words{.name = "long_words",
                        .meaning = "below, at and above every rounding boundary, then random lengths",
                        .is_complete = false,
                        .operand_count = 1,
                        .shard_count = codes_count,
                        .shard_size = codes_count,
                        .inputs = two_to_32,
                        .at = long_word_at,
                        .boundary_shards = boundary_points};
const Domain triples{.name = "triples",
                     .meaning = "random triples that cancel, tie or touch a border",
                     .is_complete = false,
                     .operand_count = 3,
                     .shard_count = codes_count,
                     .shard_size = codes_count,
                     .inputs = two_to_32,
                     .at = triple_at,
                     .boundary_shards = first_only};
const Domain device_codes{.name = "device_codes",
                          .meaning = "all 2^16 codes",
                          .is_complete = true,
                          .operand_count = 1,
                          .shard_count = 1,
                          .shard_size = codes_count,
                          .inputs = codes_count,
                          .at = nullptr,
                          .boundary_shards = first_only};
const Domain device_pairs{.name = "device_pairs",
                          .meaning = "all 2^32 pairs of codes",
                          .is_complete = true,
                          .operand_count = 2,
                          .shard_count = 1,
                          .shard_size = two_to_32,
                          .inputs = two_to_32,
                          .at = nullptr,
                          .boundary_shards = first_only};
const Domain device_words{.name = "device_words",
                          .meaning = "all 2^32 codes",
                          .is_complete = true,
                          .operand_count = 1,
                          .shard_count = 1,
                          .shard_size = two_to_32,
                          .inputs = two_to_32,
                          .at = nullptr,
                          .boundary_shards = first_only};
const Domain device_triples{.name = "device_triples",
                            .meaning = "all 2^48 triples of codes",
                            .is_complete = true,
                            .operand_count = 3,
                            .shard_count = codes_count,
                            .shard_size = two_to_32,
                            .inputs = codes_count * two_to_32,
                            .at = nullptr,
                            .boundary_shards = boundary_codes};
const Domain device_points{.name = "device_points",
                           .meaning = "2^24: around every rounding boundary, then random",
                           .is_complete = false,
                           .operand_count = 1,
                           .shard_count = 1,
                           .shard_size = std::uint64_t{1} << 24,
                           .inputs = std::uint64_t{1} << 24,
                           .at = nullptr,
                           .boundary_shards = first_only};

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
  for (std::uint64_t k = 0; k < domain.shard_count; ++k)
    take(static_cast<std::uint32_t>(k * step % domain.shard_count));
  return chosen;
}

}  // namespace experiments::validate_gpu
