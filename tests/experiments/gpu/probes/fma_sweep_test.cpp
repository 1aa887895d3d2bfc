#include "experiments/gpu/probes/fma_sweep.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/gpu/probes/index.h"
#include "fp16/codec.h"
#include "fp16/cuda/device.h"
#include "fp16/cuda/mix.h"
#include "fp16/ops.h"
#include "tests/oracle/exact_half.h"

namespace cuda = fp16::cuda;
namespace probes = experiments::probes;
namespace ops = fp16::ops;
using fp16::half;

namespace {

struct Triple {
  std::uint16_t a, b, c;
};

constexpr std::uint16_t canonical_nan = 0x7fff, one = 0x3c00, infinity = 0x7c00, sign = 0x8000;

bool is_nan(std::uint16_t code) {
  return (code & 0x7fff) > infinity;
}

std::uint16_t software_fma(const Triple& t) {
  return ops::FusedMultiplyAdd{}(half::from_bits(t.a), half::from_bits(t.b), half::from_bits(t.c)).bits();
}

/// In integers, what cvt.rn.f16.f64 does on a device.
std::uint16_t rounded(double value) {
  return fp16::encode<fp16::binary16>(value).bits;
}

probes::FmaAnswers reference_answers(const Triple& t) {
  const unsigned offset = t.c % probes::fma_run_length;
  const probes::FmaReference reference(t.a, t.b, static_cast<std::uint16_t>(t.c - offset));
  const std::uint32_t code = rounded(reference.sum(offset));
  return probes::FmaAnswers::of_rounded(code << 16 | code);
}

std::uint16_t reference_fma(const Triple& t) {
  return static_cast<std::uint16_t>(reference_answers(t).plain);
}

std::uint16_t oracle_fma(const Triple& t) {
  const std::uint16_t bits =
      oracle::fma(t.a, t.b, t.c)[static_cast<std::size_t>(oracle::Direction::nearest_even)].bits;
  return is_nan(bits) ? canonical_nan : bits;
}

/// Codes of every class and at every border of the format.
const std::array<std::uint16_t, 27> border_codes{0x0000, 0x0001, 0x0002, 0x01ff, 0x0200, 0x03fe, 0x03ff,
                                                 0x0400, 0x0401, 0x07ff, 0x0800, 0x1000, 0x13ff, 0x2c00,
                                                 0x37ff, 0x3800, 0x3bff, 0x3c00, 0x3c01, 0x3fff, 0x5bff,
                                                 0x7800, 0x7bfe, 0x7bff, 0x7c00, 0x7c01, 0x7fff};

std::vector<std::uint16_t> signed_borders() {
  std::vector<std::uint16_t> codes(border_codes.begin(), border_codes.end());
  for (const std::uint16_t code : border_codes) codes.push_back(code | sign);
  return codes;
}

/// Triples whose exact value is near c, near a midpoint beside c, or cancels: c or its neighbours are opposite
/// to the rounded product, or the product is near half a unit of c's last place.
Triple hard_triple(std::uint64_t seed) {
  const std::uint64_t random = cuda::mix(seed);
  Triple t{.a = static_cast<std::uint16_t>(random),
           .b = static_cast<std::uint16_t>(random >> 16),
           .c = static_cast<std::uint16_t>(random >> 32)};
  const auto step = static_cast<std::uint16_t>((random >> 48) % 3);
  switch (seed % 4) {
    case 0:
      return t;
    case 1:  // cancellation
      t.c = static_cast<std::uint16_t>((software_fma({t.a, t.b, 0}) ^ sign) + step - 1);
      return t;
    case 2: {  // the product about half a unit in the last place of c
      const int exponent = (t.c >> 10 & 31) - 11;
      const int b_exponent = std::clamp(exponent - (t.a >> 10 & 31) + 15 + step - 1, 0, 30);
      t.b = static_cast<std::uint16_t>((t.b & 0x83ff) | b_exponent << 10);
      if (random >> 60 == 0) t.a = static_cast<std::uint16_t>(t.a & 0xfc00), t.b &= 0xfc00;
      return t;
    }
    default:  // the product about as large as the largest number, or as the smallest
      t.b = static_cast<std::uint16_t>((t.b & 0x83ff) |
                                       std::clamp((step == 0 ? 1 : 45) - (t.a >> 10 & 31), 0, 30) << 10);
      return t;
  }
}

void require_same(const Triple& t, std::uint16_t found, std::uint16_t expected) {
  if (found == expected) return;
  CAPTURE(t.a);
  CAPTURE(t.b);
  CAPTURE(t.c);
  REQUIRE(found == expected);
}

}  // namespace

TEST_CASE("two roundings in binary64 and binary16 are one, at all borders") {
  const std::vector<std::uint16_t> codes = signed_borders();
  for (const std::uint16_t a : codes) {
    for (const std::uint16_t b : codes) {
      for (const std::uint16_t c : codes) {
        const Triple t{a, b, c};
        require_same(t, reference_fma(t), oracle_fma(t));
        require_same(t, software_fma(t), oracle_fma(t));
      }
    }
  }
}

TEST_CASE("the reference is the exact result rounded once, on hard triples") {
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    const Triple t = hard_triple(seed);
    require_same(t, reference_fma(t), oracle_fma(t));
  }
}

TEST_CASE("the reference is the software fma, on ten million triples") {
  for (std::uint64_t seed = 0; seed < 10000000; ++seed) {
    const Triple t = hard_triple(seed);
    require_same(t, reference_fma(t), software_fma(t));
  }
}

TEST_CASE("the reference at overflow, on ties and at exact zeros") {
  // 65504 + 16 is the tie where overflow begins; 15.99 stays below it.
  CHECK(reference_fma({0x7bff, one, 0x4c00}) == infinity);
  CHECK(reference_fma({0x7bff, one, 0x4bff}) == 0x7bff);
  CHECK(reference_fma({0xfbff, one, 0xcc00}) == 0xfc00);
  // 65504 + 16 - 2^-48: the smallest product there is, beside a tie.
  CHECK(reference_fma({0x0001, 0x8001, 0x7bff}) == 0x7bff);
  CHECK(reference_fma({0x4400, 0x4400, 0x7bff}) == infinity);
  // 1 + 2^-11 is a tie, and one beside it on either side.
  CHECK(reference_fma({0x1000, one, one}) == one);
  CHECK(reference_fma({0x1000, 0x3c01, one}) == 0x3c01);
  CHECK(reference_fma({0x1000, 0x3bff, 0x3c01}) == 0x3c01);
  CHECK(reference_fma({0x1000, one, 0x3c01}) == 0x3c02);
  for (const std::uint16_t a : {std::uint16_t{0}, one, std::uint16_t{0x0001}}) {
    const std::uint16_t minus_a = a | sign;
    CHECK(reference_fma({a, one, minus_a}) == 0);
    CHECK(reference_fma({minus_a, one, a}) == 0);
  }
  CHECK(reference_fma({sign, one, sign}) == sign);
  CHECK(reference_fma({0x0001, 0x8001, 0}) == sign);
  CHECK(reference_fma({0x0001, 0x0001, sign}) == 0);
  CHECK(reference_fma({infinity, 0, one}) == canonical_nan);
  CHECK(reference_fma({infinity, one, 0xfc00}) == canonical_nan);
}

TEST_CASE("answers of the three kinds from every rounded code, in either number") {
  for (unsigned code = 0; code < 65536; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    const std::uint16_t plain = is_nan(bits) ? canonical_nan : bits;
    const std::uint16_t relu = (plain & sign) != 0 ? 0 : plain;
    const std::uint16_t saturated = is_nan(bits) ? 0 : std::min(relu, one);
    const std::uint16_t other = static_cast<std::uint16_t>(probes::partner(code, 16));
    const probes::FmaAnswers first = probes::FmaAnswers::of_rounded(std::uint32_t{other} << 16 | code);
    const probes::FmaAnswers second = probes::FmaAnswers::of_rounded(code << 16 | other);
    REQUIRE((first.plain & 0xffff) == plain);
    REQUIRE((first.relu & 0xffff) == relu);
    REQUIRE((first.saturated & 0xffff) == saturated);
    REQUIRE((second.plain >> 16) == plain);
    REQUIRE((second.relu >> 16) == relu);
    REQUIRE((second.saturated >> 16) == saturated);
  }
}

TEST_CASE("the software fma has the symmetries by which the sweep leaves triples out") {
  const auto check = [](const Triple& t) {
    const std::uint16_t result = software_fma(t);
    require_same(t, software_fma({t.b, t.a, t.c}), result);
    const auto minus = [](std::uint16_t code) { return static_cast<std::uint16_t>(code ^ sign); };
    require_same(t, software_fma({minus(t.a), minus(t.b), t.c}), result);
    const std::uint16_t product = software_fma({t.a, t.b, 0});
    // Opposite signs of product and sum, and nothing left.
    const bool cancels = result == 0 && software_fma({minus(t.a), t.b, minus(t.c)}) == 0;
    const bool opposite = ((t.a ^ t.b ^ t.c) & sign) != 0;
    if (cancels) CHECK(opposite);
    const std::uint16_t negated = is_nan(result) || cancels ? result : minus(result);
    require_same(t, software_fma({minus(t.a), t.b, minus(t.c)}), negated);
    if (cancels) CHECK((product & 0x7fff) == (t.c & 0x7fff));
  };
  for (std::uint64_t seed = 0; seed < 1000000; ++seed) check(hard_triple(seed));
  const std::vector<std::uint16_t> codes = signed_borders();
  for (const std::uint16_t a : codes) {
    for (const std::uint16_t b : codes) {
      for (const std::uint16_t c : codes) check({a, b, c});
    }
  }
}

namespace {

/// The digest that run_fma's header states, from the reference.
std::uint64_t expected_digest(std::uint16_t a, std::uint16_t b, std::size_t function) {
  std::uint64_t digest = 0;
  for (std::uint32_t first_c = 0; first_c < 65536; first_c += probes::fma_run_length) {
    std::uint32_t hash = 0, weight = 1;
    for (std::uint32_t c = first_c; c < first_c + probes::fma_run_length; c += 2) {
      weight *= probes::fma_weight_step;
      for (const std::uint32_t odd : {0u, 1u}) {
        const probes::FmaAnswers answers = reference_answers({a, b, static_cast<std::uint16_t>(c + odd)});
        const std::uint32_t answer = function < 2   ? answers.plain
                                     : function < 4 ? answers.saturated
                                                    : answers.relu;
        hash += (answer & 0xffff) * (odd == 1 ? 65536 : 1) * weight;
      }
    }
    const std::uint64_t number = std::uint64_t{a} << 32 | std::uint64_t{b} << 16 | first_c;
    digest += probes::digest_of(number, hash, function % 2 == 1 ? hash : 0);
  }
  return digest;
}

bool skipped() {
  if (cuda::available()) return false;
  MESSAGE("skipped: " << cuda::unavailable_reason());
  return true;
}

}  // namespace

TEST_CASE("fused multiply-adds on the device are the references'") {
  if (skipped()) return;
  const std::array<std::array<std::uint16_t, 2>, 6> pairs{{{0x3c01, 0x3bff},
                                                           {0x0001, 0x83ff},
                                                           {0x7c00, 0},
                                                           {0x1001, 0x3bff},
                                                           {0x7bff, 0xbc01},
                                                           {0x7d01, 0x7e00}}};
  for (const auto& [a, b] : pairs) {
    const probes::FmaSweepResult result = probes::run_fma(a, b, 1);
    for (std::size_t f = 0; f < probes::fma_functions.size(); ++f) {
      CAPTURE(probes::fma_functions[f]);
      const probes::SweepResult& of_function = result.functions[f];
      CHECK(of_function.inputs == 65536);
      CHECK(of_function.mismatches == 0);
      if (of_function.nan_mismatches == 0) CHECK(of_function.digest == expected_digest(a, b, f));
    }
    const std::uint64_t representatives = a <= b && b < 0x8000 ? 65536 : 0;
    CHECK(result.software.inputs == representatives);
    CHECK(result.software.mismatches == 0);
  }
}

TEST_CASE("digests of fused multiply-adds add up") {
  if (skipped()) return;
  const probes::FmaSweepResult whole = probes::run_fma(0x3555, 0x3555, 2),
                               low = probes::run_fma(0x3555, 0x3555, 1),
                               high = probes::run_fma(0x3555, 0x3556, 1);
  for (std::size_t f = 0; f < probes::fma_functions.size(); ++f)
    CHECK(whole.functions[f].digest == low.functions[f].digest + high.functions[f].digest);
  CHECK(whole.software.digest == low.software.digest + high.software.digest);
  CHECK(whole.software.inputs == 2 * 65536);
}

TEST_CASE("parts of a shard of fused multiply-adds that there are not") {
  if (skipped()) return;
  CHECK_THROWS_WITH_AS(probes::run_fma(0, 65535, 2),
                       "sweep of fma: 2 values of b from 65535 on; allowed: 1 or more, all below 65536",
                       std::invalid_argument);
  CHECK_THROWS_AS(probes::run_fma(0, 0, 0), std::invalid_argument);
}
