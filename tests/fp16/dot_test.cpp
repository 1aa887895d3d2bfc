#include "fp16/dot.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fp16/codec.h"
#include "tests/fp16/sum_oracle.h"
#include "tests/oracle/agreement.h"

namespace fp16 {
namespace {

using oracle::Halves;
using oracle::Rational;

// -(1 + 2^-9) * 1 + (1 + 2^-10)^2 = 2^-20: lost where the second product is rounded by itself.
constexpr std::array<std::uint16_t, 2> square_a{0xbc02, 0x3c01};
constexpr std::array<std::uint16_t, 2> square_b{0x3c00, 0x3c01};
static_assert(dot_fma<binary16>(square_a, square_b) == Result<binary16>{0x0010, {}});
static_assert(dot_mul_add<binary16>(square_a, square_b) == Result<binary16>{0x0000, {.inexact = true}});
static_assert(dot_binary32<binary16>(square_a, square_b) == Result<binary16>{0x0010, {}});
static_assert(dot_exact<binary16>(square_a, square_b) == Result<binary16>{0x0010, {}});

// 2048 + 1 + 1: in halves each 1 is a tie that is lost; in binary32 the sum is exact.
constexpr std::array<std::uint16_t, 3> ties_a{0x6800, 0x3c00, 0x3c00};
constexpr std::array<std::uint16_t, 3> ties_b{0x3c00, 0x3c00, 0x3c00};
static_assert(dot_fma<binary16>(ties_a, ties_b).bits == 0x6800);
static_assert(dot_mul_add<binary16>(ties_a, ties_b).bits == 0x6800);
static_assert(dot_fma<binary16, binary32>(ties_a, ties_b) == Result<binary32>{0x45002000, {}});  // 2050
static_assert(dot_binary32<binary16>(ties_a, ties_b) == Result<binary16>{0x6801, {}});

// 2^24 + 1 + 1 - 2^24: what binary32 loses, the exact product has.
constexpr std::array<std::uint16_t, 4> swamped_a{0x6c00, 0x3c00, 0x3c00, 0xec00};
constexpr std::array<std::uint16_t, 4> swamped_b{0x6c00, 0x3c00, 0x3c00, 0x6c00};
static_assert(dot_fma<binary16, binary32>(swamped_a, swamped_b) == Result<binary32>{0, {.inexact = true}});
static_assert(dot_exact<binary16>(swamped_a, swamped_b) == Result<binary16>{0x4000, {}});

// The smallest product, 2^-48, and the largest, 65504^2.
constexpr std::array<std::uint16_t, 1> smallest{0x0001}, largest{0x7bff};
static_assert(dot_exact<binary32, binary16>(smallest, smallest) == Result<binary32>{0x27800000, {}});
static_assert(dot_exact<binary16>(smallest, smallest, {Rounding::toward_positive}) ==
              Result<binary16>{0x0001, {.inexact = true, .underflow = true}});
static_assert(dot_exact<binary16>(largest, largest) ==
              Result<binary16>{0x7c00, {.inexact = true, .overflow = true}});
static_assert(dot_exact<binary64, binary16>(largest, largest).bits ==
              std::bit_cast<std::uint64_t>(65504.0 * 65504.0));

struct Pair {
  Halves a, b;
};

Pair hard_pair(oracle::HardArrays& arrays, int index) {
  const auto size = static_cast<std::size_t>(index % 25 == 0 ? 300 : arrays.below(40));
  Pair pair{arrays.next(size), {}};
  pair.b = arrays.next(size);
  return pair;
}

/// Products that cancel but for a few: (x, y) and (-x, y) or (y, -x), and small ones among them, shuffled.
Pair cancelling_pair(oracle::HardArrays& arrays, std::size_t size) {
  const Halves x = arrays.finite(size, 0), y = arrays.finite(size, 0);
  std::vector<std::size_t> order;
  Pair products;
  const auto append = [&](int a, int b) {
    products.a.push_back(static_cast<std::uint16_t>(a));
    products.b.push_back(static_cast<std::uint16_t>(b));
  };
  for (std::size_t i = 0; i < size; ++i) {
    append(x[i], y[i]);
    if (i % 2 == 0) {
      append(x[i] ^ 0x8000, y[i]);
    } else {
      append(y[i], x[i] ^ 0x8000);
    }
    if (arrays.below(4) == 0) append(arrays.below(0x400), arrays.below(0x4000));
  }
  for (std::size_t i = products.a.size(); i > 1; --i) {
    const auto j = static_cast<std::size_t>(arrays.below(static_cast<int>(i)));
    std::swap(products.a[i - 1], products.a[j]);
    std::swap(products.b[i - 1], products.b[j]);
  }
  // Leave one product without its opposite now and then.
  if (arrays.below(2) == 0) products.a[0] ^= 0x8000;
  return products;
}

bool all_finite(const Halves& values) {
  return std::ranges::all_of(values, [](std::uint16_t code) { return is_finite<binary16>(code); });
}

Rational exact_dot(const Pair& pair) {
  Rational sum = 0;
  for (std::size_t k = 0; k < pair.a.size(); ++k)
    sum += oracle::exact_value(pair.a[k]) * oracle::exact_value(pair.b[k]);
  return sum;
}

TEST_CASE("products of nothing are +0") {
  for (const DotOrder<binary16>& order : dot_orders<binary16>)
    CHECK(order.dot({}, {}, {Rounding::toward_negative}) == Result<binary16>{0, {}});
}

TEST_CASE("the half chains equal exact arithmetic rounded at each step, in all directions with flags") {
  constexpr int count = 1000;
  oracle::HardArrays arrays(61);
  oracle::Comparison fused("fma"), separate("mul_add");
  for (int i = 0; i < count; ++i) {
    const Pair pair = hard_pair(arrays, i);
    for (std::size_t d = 0; d < oracle::direction_count; ++d) {
      oracle::HalfMachine fused_machine(d), separate_machine(d);
      std::uint16_t fused_sum = 0, separate_sum = 0;
      for (std::size_t k = 0; k < pair.a.size(); ++k) {
        fused_sum = fused_machine.fma(pair.a[k], pair.b[k], fused_sum);
        separate_sum = separate_machine.add(separate_sum, separate_machine.multiply(pair.a[k], pair.b[k]));
      }
      const Attributes attributes{oracle::roundings[d]};
      const std::uint64_t index = static_cast<std::uint64_t>(i);
      fused.equal(oracle::as_outcome(dot_fma<binary16>(pair.a, pair.b, attributes)),
                  fused_machine.finish(fused_sum), oracle::direction_names[d], {index});
      separate.equal(oracle::as_outcome(dot_mul_add<binary16>(pair.a, pair.b, attributes)),
                     separate_machine.finish(separate_sum), oracle::direction_names[d], {index});
    }
  }
  fused.finish(count * oracle::direction_count);
  separate.finish(count * oracle::direction_count);
}

/// Multiplies and adds: that the products are exact is part of what is tested.
Result<binary32> host_chain(const Pair& pair, int environment) {
  std::fesetround(environment);
  std::feclearexcept(FE_ALL_EXCEPT);
  volatile float sum = 0;
  for (std::size_t k = 0; k < pair.a.size(); ++k) {
    volatile const float a = half_bits_to_float(pair.a[k]), b = half_bits_to_float(pair.b[k]);
    volatile const float product = a * b;
    sum = sum + product;
  }
  const int raised = std::fetestexcept(FE_ALL_EXCEPT);
  std::fesetround(FE_TONEAREST);
  return {.bits = std::bit_cast<std::uint32_t>(static_cast<float>(sum)),
          .flags = {.inexact = (raised & FE_INEXACT) != 0,
                    .underflow = (raised & FE_UNDERFLOW) != 0,
                    .overflow = (raised & FE_OVERFLOW) != 0,
                    .divide_by_zero = (raised & FE_DIVBYZERO) != 0,
                    .invalid = (raised & FE_INVALID) != 0}};
}

TEST_CASE("FP32 accumulation equals the host's multiplications and additions of floats, with flags") {
  struct HostDirection {
    Rounding mode;
    int environment;
    std::size_t index;  // among the oracle's directions
  };
  constexpr std::array directions{HostDirection{Rounding::nearest_even, FE_TONEAREST, 0},
                                  HostDirection{Rounding::toward_zero, FE_TOWARDZERO, 2},
                                  HostDirection{Rounding::toward_positive, FE_UPWARD, 3},
                                  HostDirection{Rounding::toward_negative, FE_DOWNWARD, 4}};
  oracle::HardArrays arrays(62);
  oracle::Comparison rounded("rounded to half");
  int inexact = 0;
  for (int i = 0; i < 5000; ++i) {
    const Pair pair = i % 2 == 0 ? hard_pair(arrays, i) : cancelling_pair(arrays, 20);
    if (!all_finite(pair.a) || !all_finite(pair.b)) continue;
    for (const auto& [mode, environment, index] : directions) {
      const Result<binary32> sum = dot_fma<binary16, binary32>(pair.a, pair.b, {mode});
      REQUIRE(sum == host_chain(pair, environment));
      inexact += sum.flags.inexact;
      oracle::Outcome half = oracle::from_binary32(sum.bits)[index];
      half.inexact |= sum.flags.inexact;
      rounded.equal(oracle::as_outcome(dot_binary32<binary16>(pair.a, pair.b, {mode})), half,
                    oracle::direction_names[index], {static_cast<std::uint64_t>(i)});
    }
  }
  CHECK(inexact > 3000);
}

TEST_CASE(
    "the exact product equals that of rationals, rounded to every width, in all directions with flags") {
  oracle::HardArrays arrays(63);
  oracle::Comparison comparison("exact");
  std::uint64_t compared = 0;
  int underflows = 0, overflows = 0;
  for (int i = 0; i < 1500; ++i) {
    const Pair pair =
        i % 3 == 0 ? hard_pair(arrays, i) : cancelling_pair(arrays, i % 50 == 1 ? 300 : 1 + arrays.below(20));
    if (!all_finite(pair.a) || !all_finite(pair.b)) continue;
    const Rational exact = exact_dot(pair);
    if (exact == 0) continue;
    ++compared;
    const oracle::Outcomes expected = oracle::round_to_half(exact);
    underflows += expected[0].underflow;
    overflows += expected[0].overflow;
    comparison.equal_in_all_directions(
        expected, {static_cast<std::uint64_t>(i)},
        [&](const Attributes& attributes) { return dot_exact<binary16>(pair.a, pair.b, attributes); });
    for (const Rounding mode : oracle::roundings) {
      const auto narrow = dot_exact<binary32, binary16>(pair.a, pair.b, {mode});
      REQUIRE(oracle::is_rounded(std::bit_cast<float>(narrow.bits), exact, mode));
      const auto wide = dot_exact<binary64, binary16>(pair.a, pair.b, {mode});
      REQUIRE(oracle::is_rounded(std::bit_cast<double>(wide.bits), exact, mode));
      REQUIRE(wide.flags.inexact == (oracle::exact_value(std::bit_cast<double>(wide.bits)) != exact));
    }
  }
  comparison.finish(compared * oracle::direction_count);
  CHECK(compared > 1000);
  CHECK(underflows > 50);
  CHECK(overflows > 50);
}

TEST_CASE("exact products of floats and doubles over their whole range, against rationals") {
  oracle::HardFloats floats(64);
  oracle::HardDoubles doubles(65);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::uint32_t> a, b;
    std::vector<std::uint64_t> x, y;
    Rational narrow = 0, wide = 0;
    for (int k = 0; k < 6; ++k) {
      // Factors below 2^33 and below 2, so that nothing overflows; every other product nearly cancels.
      const bool cancels = k % 2 == 1 && i % 2 == 0;
      a.push_back(cancels ? (a.back() ^ 0x80000000) + k : floats.next() & 0xcfffffff);
      b.push_back(cancels ? b.back() : floats.next() & 0xbfffffff);
      x.push_back(cancels ? (x.back() ^ (std::uint64_t{1} << 63)) + k : doubles.next() & 0xbfffffffffffffff);
      y.push_back(cancels ? y.back() : doubles.next() & 0xbfffffffffffffff);
      narrow += oracle::exact_value(std::bit_cast<float>(a.back())) *
                oracle::exact_value(std::bit_cast<float>(b.back()));
      wide += oracle::exact_value(std::bit_cast<double>(x.back())) *
              oracle::exact_value(std::bit_cast<double>(y.back()));
    }
    for (const Rounding mode : oracle::roundings) {
      const auto to_double = dot_exact<binary64, binary32>(a, b, {mode});
      REQUIRE(oracle::is_rounded(std::bit_cast<double>(to_double.bits), narrow, mode));
      const auto to_float = dot_exact<binary32>(a, b, {mode});
      REQUIRE(oracle::is_rounded(std::bit_cast<float>(to_float.bits), narrow, mode));
      const auto of_doubles = dot_exact<binary64>(x, y, {mode});
      REQUIRE(oracle::is_rounded(std::bit_cast<double>(of_doubles.bits), wide, mode));
    }
  }
}

TEST_CASE("one exact product is a multiplication, with an addend a fused multiply-add, in every format") {
  oracle::RandomBits random(66);
  for_each_format([&]<const Format & F>() {
    if constexpr (F.has_arithmetic()) {
      CAPTURE(name_of(F));
      for (int i = 0; i < 10'000; ++i) {
        const auto mask = static_cast<Bits<F>>(sign_mask<F> | (sign_mask<F> - 1));
        const std::array<Bits<F>, 1> a{static_cast<Bits<F>>(random.next() & mask)};
        const std::array<Bits<F>, 1> b{static_cast<Bits<F>>(random.next() & mask)};
        const auto near_product = static_cast<Bits<F>>(multiply<F>(a[0], b[0]).bits + random.below(5) - 2);
        const auto c = static_cast<Bits<F>>((i % 2 == 0 ? random.next() : near_product ^ sign_mask<F>)&mask);
        if (is_nan<F>(a[0]) || is_nan<F>(b[0]) || is_nan<F>(c)) continue;
        const Attributes attributes{.rounding = static_cast<Rounding>(random.below(7)),
                                    .random_bits = random.next(),
                                    .saturate = random.below(2) == 0,
                                    .flush_to_zero = random.below(4) == 0,
                                    .tininess = static_cast<Tininess>(random.below(2)),
                                    .nan_policy = static_cast<NanPolicy>(random.below(3))};
        REQUIRE(dot_exact<F>(a, b, attributes) == multiply<F>(a[0], b[0], attributes));
        ExactAccumulator<F> sum;
        sum.add_product(a[0], b[0]);
        sum.add(c);
        REQUIRE(sum.template rounded<F>(attributes) == fma<F>(a[0], b[0], c, attributes));
      }
    }
  });
}

TEST_CASE("2^47 - 1 of the largest products fit") {
  // Doubled 46 times, each power of two kept once: 1 + 2 + 4 + ... + 2^46 terms.
  const Rational largest_product = oracle::exact_value(std::uint16_t{0x7bff}) * 65504;
  for (const std::uint16_t sign : {0x0000, 0x8000}) {
    ExactAccumulator<binary16> power, total;
    power.add_product(0x7bff, 0x7bff ^ sign);
    for (int k = 0; k < 47; ++k) {
      total.merge(power);
      if (k < 46) power.merge(ExactAccumulator<binary16>(power));
    }
    const Rational exact = largest_product * ((std::int64_t{1} << 47) - 1) * (sign == 0 ? 1 : -1);
    for (const Rounding mode : oracle::roundings) {
      REQUIRE(oracle::is_rounded(std::bit_cast<double>(total.rounded<binary64>({mode}).bits), exact, mode));
      REQUIRE(oracle::is_rounded(std::bit_cast<float>(total.rounded<binary32>({mode}).bits), exact, mode));
    }
  }
}

TEST_CASE("the exact product depends on no order") {
  oracle::HardArrays arrays(67);
  int chains_that_differ = 0;
  for (int i = 0; i < 300; ++i) {
    Pair pair = i % 2 == 0 ? cancelling_pair(arrays, 40) : hard_pair(arrays, i);
    const Result<binary16> product = dot_exact<binary16>(pair.a, pair.b);
    const Result<binary32> chain = dot_fma<binary16, binary32>(pair.a, pair.b);
    std::ranges::reverse(pair.a);
    std::ranges::reverse(pair.b);
    std::rotate(pair.a.begin(), pair.a.begin() + pair.a.size() / 3, pair.a.end());
    std::rotate(pair.b.begin(), pair.b.begin() + pair.b.size() / 3, pair.b.end());
    REQUIRE(dot_exact<binary16>(pair.a, pair.b) == product);
    REQUIRE(dot_exact<binary16>(pair.b, pair.a) == product);
    chains_that_differ += dot_fma<binary16, binary32>(pair.a, pair.b).bits != chain.bits;
  }
  CHECK(chains_that_differ > 100);
}

TEST_CASE("special values") {
  const Halves one{0x3c00, 0x3c00};
  const Halves infinite{0x3c00, 0x7c00}, both{0xfc00, 0x7c00}, zero{0x3c00, 0x8000};
  const Halves quiet{0x3c00, 0x7e01}, signalling{0x7d01, 0x3c00};
  const Result<binary16> invalid{0xfe00, {.invalid = true}};
  for (const DotOrder<binary16>& order : dot_orders<binary16>) {
    CAPTURE(order.name);
    CHECK(order.dot(infinite, one, {}) == Result<binary16>{0x7c00, {}});
    CHECK(order.dot(both, one, {}) == invalid);
    CHECK(order.dot(infinite, zero, {}) == invalid);
    CHECK(is_nan<binary16>(order.dot(quiet, one, {}).bits));
    CHECK(order.dot(quiet, one, {}).flags == Flags{});
    CHECK(is_nan<binary16>(order.dot(one, signalling, {}).bits));
    CHECK(order.dot(one, signalling, {}).flags == Flags{.invalid = true});
    CHECK(order.dot(infinite, one, {.saturate = true}).bits == 0x7bff);
    CHECK(order.dot(infinite, zero, {.saturate = true}) == invalid);
    const Halves subnormal{0x03ff};
    CHECK(order.dot(subnormal, Halves{0x3c00}, {.denormals_are_zero = true}).bits == 0);
    CHECK(order.dot(subnormal, Halves{0x6400}, {.denormals_are_zero = true}).bits == 0);
    CHECK(order.dot(Halves{0x6400}, subnormal, {.denormals_are_zero = true}).bits == 0);
    CHECK(order.dot(subnormal, Halves{0x6400}, {}).bits == 0x2bfe);
  }
}

TEST_CASE("Higham's bounds hold for every chain on cancelling products") {
  oracle::HardArrays arrays(68);
  const Rational smallest_error(1, std::int64_t{1} << 25);
  int beyond_binary32_bound = 0;
  for (int i = 0; i < 300; ++i) {
    // Factors about 1 and small ones, so that nothing overflows but products underflow.
    const auto n = static_cast<std::size_t>(2 + arrays.below(i % 10 == 0 ? 500 : 50));
    Pair pair{arrays.finite(n, 2), arrays.finite(n, 2)};
    for (std::size_t k = 1; k < n; k += 2) {
      pair.a[k] = static_cast<std::uint16_t>(pair.a[k - 1] ^ 0x8000);
      pair.b[k] = static_cast<std::uint16_t>(pair.b[k - 1] + arrays.below(3));
      if (k % 5 == 0) pair.a[k] &= 0x07ff;
    }
    const Rational exact = exact_dot(pair);
    Rational magnitudes = 0;
    for (std::size_t k = 0; k < n; ++k)
      magnitudes += abs(oracle::exact_value(pair.a[k]) * oracle::exact_value(pair.b[k]));

    const Rational gamma = oracle::gamma(n);
    const Rational bound = gamma * magnitudes + static_cast<int>(n) * (1 + gamma) * smallest_error;
    const Rational fused = abs(oracle::exact_value(dot_fma<binary16>(pair.a, pair.b).bits) - exact);
    REQUIRE(fused <= bound);
    REQUIRE(abs(oracle::exact_value(dot_mul_add<binary16>(pair.a, pair.b).bits) - exact) <= bound);
    const Rational binary32_bound = oracle::gamma(n - 1, 24) * magnitudes;
    const auto sum = std::bit_cast<float>(dot_fma<binary16, binary32>(pair.a, pair.b).bits);
    REQUIRE(abs(oracle::exact_value(sum) - exact) <= binary32_bound);
    beyond_binary32_bound += fused > binary32_bound;
  }
  CHECK(beyond_binary32_bound > 100);
}

}  // namespace
}  // namespace fp16
