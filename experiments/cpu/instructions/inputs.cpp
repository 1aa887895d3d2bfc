#include "experiments/cpu/instructions/inputs.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include "fp16/codec.h"
#include "fp16/formats.h"

namespace experiments::validate_cpu {
namespace {

using validation::Domain;
using validation::Operands;
using validation::trials::random_bits;

/// One in 16 is any code at all; else zeros, infinities and NaNs are left to the exponents of both ends.
std::uint16_t bfloat_of(std::uint64_t random) {
  if ((random >> 16 & 15) == 0) return static_cast<std::uint16_t>(random);
  constexpr std::uint16_t fields = 0x807F;
  const auto exponent = static_cast<std::uint16_t>(127 - 12 + (random >> 20 & 0xFFFF) % 25);
  return static_cast<std::uint16_t>((random & fields) | exponent << 7);
}

/// An addend that is anything, near -product, near a half of its last place, or so small that it only decides a tie.
std::uint32_t addend_of(double product, std::uint64_t random) {
  const auto near = [&](double value) -> std::uint32_t {
    if (std::isnan(value))
      return fp16::quiet_nan_bits<fp16::binary32>;  // a processor's own choice has another sign
    const auto offset = static_cast<std::uint32_t>(random >> 40 & 7) - 4;
    return std::bit_cast<std::uint32_t>(static_cast<float>(value)) + offset;
  };
  switch (random >> 61) {
    case 0:
    case 1:
      return near(-product);
    case 2:
      return near(product * 0x1p-24);
    case 3:
      return near(product * 0x1p+24);
    case 4:
      return near(product * -0x1p-13);
    case 5:
      return near(product * -0x1p+13);
    case 6:
      return static_cast<std::uint32_t>(random) & 0x80000007;
    default:
      return static_cast<std::uint32_t>(random);
  }
}

Operands half_product(std::uint32_t shard, std::uint32_t index) {
  const std::uint64_t random = random_bits(shard, index, 0);
  const auto a = static_cast<std::uint16_t>(random), b = static_cast<std::uint16_t>(random >> 16);
  const double product = fp16::decode<fp16::binary16>(a) * fp16::decode<fp16::binary16>(b);
  return {.a = a, .b = b, .c = addend_of(product, random_bits(shard, index, 1))};
}

template <std::uint32_t terms>
Operands bfloat_dot(std::uint32_t shard, std::uint32_t index) {
  Operands operands;
  double sum = 0;
  for (std::uint32_t term = 0; term < terms; ++term) {
    const std::uint16_t a = bfloat_of(random_bits(shard | term << 16, index, 1));
    const std::uint16_t b = bfloat_of(random_bits(shard | term << 16, index, 2));
    operands.a |= std::uint64_t{a} << 16 * term;
    operands.b |= std::uint64_t{b} << 16 * term;
    sum += fp16::decode<fp16::bfloat16>(a) * fp16::decode<fp16::bfloat16>(b);
  }
  operands.c = addend_of(sum, random_bits(shard, index, 0));
  return operands;
}

/// Zero, subnormal, normal, infinite, signalling, quiet.
constexpr std::uint16_t special_magnitudes[] = {0x0000, 0x0001, 0x0002, 0x03FF, 0x0400, 0x0401, 0x1400,
                                                0x3BFF, 0x3C00, 0x3C01, 0x3E00, 0x4000, 0x7800, 0x7BFF,
                                                0x7C00, 0x7C01, 0x7DFF, 0x7E00, 0x7E01, 0x7FFF};
constexpr std::uint32_t specials = 2 * std::size(special_magnitudes);

Operands special_triple(std::uint32_t, std::uint32_t index) {
  const auto special = [](std::uint32_t number) {
    return static_cast<std::uint64_t>(special_magnitudes[number / 2] | number % 2 << 15);
  };
  return {.a = special(index / specials / specials),
          .b = special(index / specials % specials),
          .c = special(index % specials)};
}

/// The first shard serves as a sample as well as any.
std::vector<std::uint32_t> first_shard() {
  return {0};
}

constexpr Domain random_products(std::string_view name, std::string_view meaning,
                                 Operands (*at)(std::uint32_t, std::uint32_t)) {
  return {.name = name,
          .meaning = meaning,
          .is_complete = false,
          .operand_count = 3,
          .shard_count = 1 << 16,
          .shard_size = 1 << 16,
          .at = at,
          .boundary_shards = first_shard};
}

}  // namespace

constinit const Domain special_triples = {.name = "special_triples",
                                          .meaning = "all triples of 40 zeros, NaNs, infinities and borders",
                                          .is_complete = false,
                                          .operand_count = 3,
                                          .shard_count = 1,
                                          .shard_size = specials * specials * specials,
                                          .at = special_triple,
                                          .boundary_shards = first_shard};
constinit const Domain half_products = random_products(
    "half_products", "random products with addends that cancel, tie or touch a border", half_product);
constinit const Domain bfloat_products = random_products(
    "bfloat_products", "random products with addends that cancel, tie or touch a border", bfloat_dot<1>);
constinit const Domain bfloat_dots_of_2 =
    random_products("bfloat_dots_of_2",
                    "random sums of products with addends that cancel, tie or touch a border", bfloat_dot<2>);
constinit const Domain bfloat_dots_of_4 =
    random_products("bfloat_dots_of_4",
                    "random sums of products with addends that cancel, tie or touch a border", bfloat_dot<4>);

}  // namespace experiments::validate_cpu
