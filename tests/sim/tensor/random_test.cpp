#include "sim/tensor/random.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/sim/tensor/normal_oracle.h"

namespace sim {
namespace {

// Statistical bounds are five standard deviations wide: with a fresh key each would fail with probability
// 6e-7. The keys are fixed, so what passes once passes always.
constexpr double deviations = 5.0;
constexpr std::size_t sample_size = 1 << 20;

TEST_CASE("FNV-1a gives its authors' known answers") {
  CHECK(fnv1a("") == 0xcbf29ce484222325);
  CHECK(fnv1a("a") == 0xaf63dc4c8601ec8c);
  CHECK(fnv1a("foobar") == 0x85944171f73967e8);
}

TEST_CASE("a stream is Philox keyed by the seed, counting below the hash of the purpose") {
  const std::uint64_t seed = 0x0123456789abcdef;
  const RandomStream stream(seed, "foobar");
  const auto block = [](std::uint64_t number) {
    return fp16::Philox{.key = 0x0123456789abcdef, .stream = 0x85944171f73967e8}.block(number);
  };
  for (std::uint64_t index : {0ull, 1ull, 2ull, 3ull, 4ull, 4294967296ull * 4 + 2, ~0ull}) {
    CAPTURE(index);
    CHECK(stream.bits(index) == block(index / 4)[index % 4]);
  }
  for (std::uint64_t index : {0ull, 1ull, 1ull << 40}) {
    const fp16::Philox::Block words = block(index + (1ull << 63));
    const auto random = static_cast<unsigned __int128>(std::uint64_t{words[1]} << 32 | words[0]);
    for (std::uint64_t n : {1ull, 2ull, 10ull, 4294967295ull, 4294967296ull}) {
      CAPTURE(n);
      CHECK(stream.below(index, n) == static_cast<std::uint64_t>(random * n >> 64));
    }
  }
}

TEST_CASE("literal values") {
  const RandomStream stream(42, "weights");
  std::vector<std::uint32_t> found;
  for (std::uint64_t index = 0; index < 4; ++index) {
    found.push_back(stream.bits(index));
    found.push_back(std::bit_cast<std::uint32_t>(stream.uniform(index)));
    found.push_back(std::bit_cast<std::uint32_t>(stream.normal(index)));
    found.push_back(static_cast<std::uint32_t>(stream.below(index, 1000)));
  }
  CHECK(found == std::vector<std::uint32_t>{0x11dbf26e, 0x3d8edf90, 0xbfbd20c9, 994, 0x27a89909, 0x3e1ea264,
                                            0xbf81fe4e, 745, 0x8ad6821e, 0x3f0ad682, 0x3dd9be22, 511,
                                            0xc96b0d90, 0x3f496b0d, 0x3f4b9adc, 526});
  CHECK(permutation(stream, 8) == std::vector<std::uint32_t>{4, 3, 6, 2, 5, 7, 1, 0});
}

TEST_CASE("uniform numbers fill the unit interval evenly") {
  const RandomStream stream(1, "uniform");
  constexpr std::size_t bins = 256;
  std::array<double, bins> counts{};
  double sum = 0;
  for (std::uint64_t index = 0; index < sample_size; ++index) {
    const float value = stream.uniform(index);
    REQUIRE(value >= 0.0f);
    REQUIRE(value < 1.0f);
    REQUIRE(std::ldexp(value, 24) == std::floor(std::ldexp(value, 24)));
    sum += value;
    ++counts[static_cast<std::size_t>(value * bins)];
  }
  const double n = sample_size;
  CHECK(std::fabs(sum / n - 0.5) < deviations * std::sqrt(1.0 / 12 / n));
  double chi_squared = 0;
  for (double count : counts) chi_squared += (count - n / bins) * (count - n / bins) / (n / bins);
  CHECK(std::fabs(chi_squared - (bins - 1)) < deviations * std::sqrt(2.0 * (bins - 1)));
}

TEST_CASE("normal numbers have the moments of the normal distribution") {
  const RandomStream stream(1, "normal");
  std::array<double, 5> moments{};
  for (std::uint64_t index = 0; index < sample_size; ++index) {
    double power = 1;
    for (double& moment : moments) {
      moment += power / sample_size;
      power *= stream.normal(index);
    }
  }
  // The variance of x^k is E[x^2k] - E[x^k]^2, with E[x^2k] = 1, 3, 15, 105.
  const double n = sample_size;
  CHECK(std::fabs(moments[1]) < deviations * std::sqrt(1 / n));
  CHECK(std::fabs(moments[2] - 1) < deviations * std::sqrt((3 - 1) / n));
  CHECK(std::fabs(moments[3]) < deviations * std::sqrt(15 / n));
  CHECK(std::fabs(moments[4] - 3) < deviations * std::sqrt((105 - 9) / n));
}

TEST_CASE("the normal map has its stated error, is odd about its middle and keeps order") {
  constexpr std::uint32_t stride = 8191;
  float previous = -std::numeric_limits<float>::infinity();
  for (std::uint64_t bits = 0; bits < 0x100000000; bits += stride) {
    const auto word = static_cast<std::uint32_t>(bits);
    const float value = RandomStream::normal_from_bits(word);
    REQUIRE(normal_relative_error(word, value) < max_normal_relative_error);
    REQUIRE(RandomStream::normal_from_bits(~word) == -value);
    REQUIRE(value > previous);
    previous = value;
  }
  CHECK(RandomStream::normal_from_bits(0) == doctest::Approx(-6.338).epsilon(1e-4));
  CHECK(RandomStream::normal_from_bits(0x80000000) > 0.0f);
}

TEST_CASE("streams of different purposes, seeds and offsets are uncorrelated") {
  const RandomStream stream(7, "left");
  const auto correlation = [&](const RandomStream& other, std::uint64_t offset) {
    double sum = 0;
    for (std::uint64_t index = 0; index < sample_size; ++index) {
      sum += static_cast<double>(stream.normal(index)) * other.normal(index + offset);
    }
    return sum / sample_size;
  };
  const double bound = deviations / std::sqrt(static_cast<double>(sample_size));
  CHECK(std::fabs(correlation(RandomStream(7, "right"), 0)) < bound);
  CHECK(std::fabs(correlation(RandomStream(8, "left"), 0)) < bound);
  CHECK(std::fabs(correlation(stream, 1)) < bound);
  CHECK(correlation(stream, 0) == doctest::Approx(1).epsilon(0.01));
}

TEST_CASE("below reaches every value equally often") {
  const RandomStream stream(3, "dice");
  constexpr std::size_t sides = 6;
  std::array<double, sides> counts{};
  for (std::uint64_t index = 0; index < sample_size; ++index) ++counts.at(stream.below(index, sides));
  const double expected = static_cast<double>(sample_size) / sides;
  for (double count : counts)
    CHECK(std::fabs(count - expected) < deviations * std::sqrt(expected * (1 - 1.0 / sides)));
}

TEST_CASE("permutations hold every number once, and every order of three comes equally often") {
  for (std::uint32_t n : {0u, 1u, 2u, 1000u}) {
    CAPTURE(n);
    std::vector<std::uint32_t> order = permutation(RandomStream(5, "order"), n);
    std::ranges::sort(order);
    REQUIRE(order.size() == n);
    for (std::uint32_t i = 0; i < n; ++i) REQUIRE(order[i] == i);
  }
  constexpr int repeats = 60000;
  std::array<double, 27> counts{};
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const auto order = permutation(RandomStream(static_cast<std::uint64_t>(repeat), "order"), 3);
    ++counts[order[0] * 9 + order[1] * 3 + order[2]];
  }
  const double expected = repeats / 6.0;
  for (std::size_t order : {5, 7, 11, 15, 19, 21}) {
    CHECK(std::fabs(counts[order] - expected) < deviations * std::sqrt(expected * 5 / 6));
  }
}

}  // namespace
}  // namespace sim

TEST_CASE("random: a stream after some numbers is the same without them, but for integers") {
  const sim::RandomStream stream(7, "after"), rest = stream.after(1000).after(5);
  std::vector<std::uint32_t> expected(70), found(70);
  stream.fill_bits(1005 + 3, expected);
  rest.fill_bits(3, found);
  CHECK(found == expected);
  for (std::uint64_t i = 0; i < 10; ++i) {
    CHECK(rest.bits(i) == stream.bits(1005 + i));
    CHECK(rest.normal(i) == stream.normal(1005 + i));
    CHECK(rest.below(i, 1000) == stream.below(i, 1000));
  }
}
