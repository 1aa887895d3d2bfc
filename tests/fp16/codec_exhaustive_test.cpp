#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "fp16/bulk.h"
#include "fp16/codec.h"
#include "tests/fp16/half_sweeps.h"
#include "tests/oracle/fast_half.h"
#include "tests/oracle/hard_triples.h"
#include "tests/oracle/sweep.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace fp16 {
namespace {

constexpr std::uint64_t shards = 1024;
using Block = OperandBlock<float, 1>;
using Floats = std::array<float, Block::size>;
using Halves = std::array<std::uint16_t, Block::size>;

#ifdef __x86_64__

template <int direction>
[[gnu::target("avx,f16c")]] void convert_by_hardware(const Floats& in, Halves& out) {
  for (std::size_t i = 0; i < in.size(); i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(&in[i]), direction | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(&out[i]), halves);
  }
}

struct HardwareDirection {
  oracle::Direction direction;
  void (*convert)(const Floats& in, Halves& out);
};
constexpr std::array hardware_directions{
    HardwareDirection{oracle::Direction::nearest_even, convert_by_hardware<_MM_FROUND_TO_NEAREST_INT>},
    HardwareDirection{oracle::Direction::toward_zero, convert_by_hardware<_MM_FROUND_TO_ZERO>},
    HardwareDirection{oracle::Direction::toward_positive, convert_by_hardware<_MM_FROUND_TO_POS_INF>},
    HardwareDirection{oracle::Direction::toward_negative, convert_by_hardware<_MM_FROUND_TO_NEG_INF>},
};

bool has_hardware() {
  return std::ranges::count(available_vector_paths(), VectorPath::avx2_f16c) != 0;
}

template <typename Comparison>
std::string hardware_difference(Comparison& comparison) {
  Halves got;
  for (const auto [direction, convert] : hardware_directions) {
    const Floats& floats = comparison.block().operands[0];
    convert(floats, got);
    const Halves& expected = comparison.expected_bits(static_cast<std::size_t>(direction));
    if (got == expected) continue;
    const auto different = std::ranges::mismatch(got, expected).in1 - got.begin();
    return "F16C" + comparison.block().text(different) + ": got " + oracle::text(got[different]) +
           ", expected " + oracle::text(expected[different]);
  }
  return "";
}

#else

bool has_hardware() {
  return false;
}
template <typename Comparison>
std::string hardware_difference(Comparison&) {
  return "";
}

#endif

TEST_CASE("all 2^32 floats to half, scalar and arrays, in all directions with flags, and F16C in its four") {
  if (!has_hardware()) MESSAGE("F16C is left out: this processor has no AVX2 with F16C");
  const SweptOperation operation{
      "float_to_half", [](float x) { return oracle::fast::from_binary32(std::bit_cast<std::uint32_t>(x)); },
      [](auto... in) { return encode<binary16>(in...); }, [](auto... in) { float_to_half(in...); }};
  // The floats of a shard have all exponents.
  constexpr std::uint64_t floats = std::uint64_t{1} << 32, stride = shards * Block::size;
  const auto run = [&](std::uint64_t shard) {
    const auto comparison = std::make_unique<BlockComparison<decltype(operation), Block>>(operation);
    oracle::Checked checked;
    for (std::uint64_t begin = shard * Block::size; begin < floats; begin += stride) {
      for (std::size_t i = 0; i < Block::size; ++i)
        comparison->block().operands[0][i] = std::bit_cast<float>(static_cast<std::uint32_t>(begin + i));
      checked += {.inputs = Block::size, .difference = comparison->first_difference()};
      if (has_hardware()) checked += {.difference = hardware_difference(*comparison)};
      if (!checked.difference.empty()) break;
    }
    return checked;
  };
  oracle::check_sweep({.name = "float_to_half", .shards = shards, .inputs = floats, .run = run});
}

/// Random bits that just let the float move away from zero, or just not, or any.
std::uint32_t hard_random_bits(oracle::RandomBits& random, float value) {
  const std::uint32_t threshold = oracle::fast::fraction_of_binary32(std::bit_cast<std::uint32_t>(value));
  const int choice = random.below(4);
  return choice < 2 ? static_cast<std::uint32_t>(random.next()) : threshold - (choice == 2);
}

struct StochasticBlock {
  static constexpr std::size_t size = 2048;
  std::array<float, size> floats;
  std::array<std::uint32_t, size> random_bits;
  std::array<std::uint16_t, size> expected, got;

  std::string difference(std::string_view what) const {
    if (got == expected) return "";
    const auto i = std::ranges::mismatch(got, expected).in1 - got.begin();
    return "stochastic conversion, " + std::string(what) + ' ' +
           oracle::text(std::bit_cast<std::uint32_t>(floats[i])) + ' ' + oracle::text(random_bits[i]) +
           ": got " + oracle::text(got[i]) + ", expected " + oracle::text(expected[i]);
  }
};

std::string first_difference(StochasticBlock& block) {
  for (std::size_t i = 0; i < block.size; ++i) {
    block.expected[i] = oracle::fast::from_binary32_stochastically(
        std::bit_cast<std::uint32_t>(block.floats[i]), block.random_bits[i]);
    const Attributes attributes{.rounding = Rounding::stochastic, .random_bits = block.random_bits[i]};
    block.got[i] = encode<binary16>(block.floats[i], attributes).bits;
  }
  std::string difference = block.difference("scalar");
  for (const VectorPath path : available_vector_paths()) {
    float_to_half(block.floats, block.got, {.rounding = Rounding::stochastic},
                  {.path = path, .random_bits_32 = block.random_bits});
    if (difference.empty()) difference = block.difference(name_of(path));
  }
  return difference;
}

TEST_CASE("2^30 boundary-weighted floats and random bits to half, stochastically, scalar and arrays") {
  constexpr std::uint64_t floats = std::uint64_t{1} << 20;
  const auto run = [](std::uint64_t shard) {
    const auto block = std::make_unique<StochasticBlock>();
    oracle::FloatsBesideHalves cases(shard);
    oracle::RandomBits random(shard + shards);
    oracle::Checked checked;
    while (checked.inputs < floats && checked.difference.empty()) {
      for (std::size_t i = 0; i < block->size; ++i) {
        block->floats[i] = std::bit_cast<float>(cases.next());
        block->random_bits[i] = hard_random_bits(random, block->floats[i]);
      }
      checked += {.inputs = block->size, .difference = first_difference(*block)};
    }
    return checked;
  };
  oracle::check_sweep(
      {.name = "float_to_half_stochastic", .shards = shards, .inputs = shards * floats, .run = run});
}

}  // namespace
}  // namespace fp16
