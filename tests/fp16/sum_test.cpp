#include "fp16/sum.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fp16/codec.h"
#include "tests/fp16/sum_oracle.h"
#include "tests/oracle/agreement.h"

namespace fp16 {
namespace {

using oracle::Halves;
using oracle::Rational;

constexpr std::uint16_t operator""_h(long double value) {
  return double_to_half_bits(static_cast<double>(value));
}
constexpr std::uint16_t negative(std::uint16_t code) {
  return negate<binary16>(code);
}

// 1 is half a unit in the last place of 2048; a tie goes to the even neighbour.
constexpr std::array ties{2048.0_h, 1.0_h, 1.0_h, 1.0_h, 1.0_h};
static_assert(sum_sequential<binary16>(ties).bits == 2048.0_h);
static_assert(sum_pairwise<binary16>(ties).bits == 2052.0_h);  // ((2048 + 1) + (1 + 1)) + 1 = 2050 + 1
static_assert(sum_blocked_tree<binary16, 32>(ties).bits == 2050.0_h);  // ((2048 + 1) + 1) + (1 + 1)
static_assert(sum_blocked_tree<binary16, 2>(ties).bits == 2052.0_h);   // neighbours, as pairwise
static_assert(sum_kahan<binary16>(ties).bits == 2052.0_h);
static_assert(sum_neumaier<binary16>(ties).bits == 2052.0_h);
static_assert(sum_exact<binary16>(ties) == Result<binary16>{2052.0_h, {}});

// Kahan's sum loses what the larger v takes from the smaller s; Neumaier's is made for it. 32 is the spacing
// from 32768 on.
constexpr std::array swamped{1.0_h, 32768.0_h, 1.0_h, negative(32768.0_h)};
static_assert(sum_sequential<binary16>(swamped).bits == 0);
static_assert(sum_pairwise<binary16>(swamped).bits == 0);
static_assert(sum_kahan<binary16>(swamped).bits == 0);
static_assert(sum_neumaier<binary16>(swamped).bits == 2.0_h);
static_assert(sum_exact<binary16>(swamped) == Result<binary16>{2.0_h, {}});

// An exact sum overflows only if it is too large itself.
constexpr std::array overflowing{65504.0_h, 65504.0_h, negative(65504.0_h)};
static_assert(sum_sequential<binary16>(overflowing) ==
              Result<binary16>{0x7c00, {.inexact = true, .overflow = true}});
static_assert(sum_exact<binary16>(overflowing) == Result<binary16>{65504.0_h, {}});
static_assert(sum_exact<binary32, binary16>(std::span(overflowing).first(2)).bits == 0x47ffe000);  // 131008

static_assert(ExactAccumulator<binary16>::term_bits == 80 && ExactAccumulator<binary16>::limb_count == 2 &&
              ExactAccumulator<binary16>::max_terms_log2 == 47);
static_assert(ExactAccumulator<binary32>::term_bits == 554 && ExactAccumulator<binary32>::limb_count == 10);

TEST_CASE("sums of nothing and of a single value") {
  for (const SumOrder<binary16>& order : sum_orders<binary16>) {
    CAPTURE(order.name);
    CHECK(order.sum({}, {}) == Result<binary16>{0, {}});
    for (const std::uint16_t code : {0x0000, 0x8000, 0x0001, 0x3c00, 0xfbff, 0x7c00}) {
      const Halves one{code};
      CHECK(order.sum(one, {Rounding::toward_negative}) == Result<binary16>{code, {}});
    }
  }
}

/// The orders once more: loops over memory, with the exact half's arithmetic.
namespace definition {

using Machine = oracle::HalfMachine;

std::uint16_t sequential(Machine& machine, const Halves& values) {
  std::uint16_t sum = values[0];
  for (std::size_t k = 1; k < values.size(); ++k) sum = machine.add(sum, values[k]);
  return sum;
}

/// Sums of 2^k values wait until another of their size is there, as in a binary counter.
std::uint16_t pairwise(Machine& machine, const Halves& values) {
  std::vector<std::pair<int, std::uint16_t>> waiting;
  for (const std::uint16_t value : values) {
    std::pair<int, std::uint16_t> sum{0, value};
    while (!waiting.empty() && waiting.back().first == sum.first) {
      sum = {sum.first + 1, machine.add(waiting.back().second, sum.second)};
      waiting.pop_back();
    }
    waiting.push_back(sum);
  }
  std::uint16_t sum = waiting.back().second;
  for (std::size_t i = waiting.size() - 1; i > 0; --i) sum = machine.add(waiting[i - 1].second, sum);
  return sum;
}

/// A kernel that reduces each block in shared memory, launched again on the sums of the blocks.
template <std::size_t width>
std::uint16_t blocked_tree(Machine& machine, Halves values) {
  while (values.size() > 1) {
    Halves sums;
    for (std::size_t first = 0; first < values.size(); first += width) {
      Halves shared(values.begin() + static_cast<std::ptrdiff_t>(first),
                    values.begin() + static_cast<std::ptrdiff_t>(std::min(first + width, values.size())));
      for (std::size_t stride = width / 2; stride > 0; stride /= 2) {
        for (std::size_t thread = 0; thread < stride && thread + stride < shared.size(); ++thread)
          shared[thread] = machine.add(shared[thread], shared[thread + stride]);
      }
      sums.push_back(shared[0]);
    }
    values = sums;
  }
  return values[0];
}

std::uint16_t kahan(Machine& machine, const Halves& values) {
  std::uint16_t s = values[0], c = 0;
  for (std::size_t k = 1; k < values.size(); ++k) {
    const std::uint16_t y = machine.subtract(values[k], c);
    const std::uint16_t t = machine.add(s, y);
    // The result does not depend on the last c.
    if (k + 1 < values.size()) c = machine.subtract(machine.subtract(t, s), y);
    s = t;
  }
  return s;
}

std::uint16_t neumaier(Machine& machine, const Halves& values) {
  if (values.size() == 1) return values[0];
  std::uint16_t s = values[0], c = 0;
  for (std::size_t k = 1; k < values.size(); ++k) {
    const std::uint16_t v = values[k];
    const std::uint16_t t = machine.add(s, v);
    if ((s & 0x7fff) >= (v & 0x7fff)) {
      c = machine.add(c, machine.add(machine.subtract(s, t), v));
    } else {
      c = machine.add(c, machine.add(machine.subtract(v, t), s));
    }
    s = t;
  }
  return machine.add(s, c);
}

struct Row {
  std::string_view name;
  std::function<std::uint16_t(Machine&, const Halves&)> sum;
};
const std::array rows{Row{"sequential", sequential},
                      Row{"pairwise", pairwise},
                      Row{"blocked_tree_32", blocked_tree<32>},
                      Row{"blocked_tree_256", blocked_tree<256>},
                      Row{"kahan", kahan},
                      Row{"neumaier", neumaier}};

}  // namespace definition

std::size_t hard_size(oracle::HardArrays& arrays, int index) {
  constexpr std::array<std::size_t, 8> borders{1, 2, 31, 32, 33, 64, 257, 1030};
  return index % 19 == 0 ? borders[static_cast<std::size_t>(index / 19) % borders.size()]
                         : 1 + static_cast<std::size_t>(arrays.below(50));
}

TEST_CASE("each order equals its definition in exact arithmetic, in all directions with flags") {
  constexpr int count = 200;
  REQUIRE(definition::rows.size() + 1 == sum_orders<binary16>.size());
  for (std::size_t row = 0; row < definition::rows.size(); ++row) {
    const SumOrder<binary16>& order = sum_orders<binary16>[row];
    REQUIRE(order.name == definition::rows[row].name);
    oracle::HardArrays arrays(51);
    oracle::Comparison comparison{std::string(order.name)};
    for (int i = 0; i < count; ++i) {
      const Halves values = arrays.next(hard_size(arrays, i));
      for (std::size_t d = 0; d < oracle::direction_count; ++d) {
        oracle::HalfMachine machine(d);
        const std::uint16_t bits = definition::rows[row].sum(machine, values);
        comparison.equal(oracle::as_outcome(order.sum(values, {oracle::roundings[d]})), machine.finish(bits),
                         oracle::direction_names[d], {values.size(), static_cast<std::uint64_t>(i)});
      }
    }
    comparison.finish(count * oracle::direction_count);
  }
}

Rational exact_sum(const Halves& values) {
  Rational sum = 0;
  for (const std::uint16_t value : values) sum += oracle::exact_value(value);
  return sum;
}

bool all_finite(const Halves& values) {
  return std::ranges::all_of(values, [](std::uint16_t code) { return is_finite<binary16>(code); });
}

TEST_CASE("the exact sum equals that of rationals, rounded, in all directions with flags") {
  oracle::HardArrays arrays(52);
  oracle::Comparison comparison("exact");
  std::uint64_t compared = 0;
  for (int i = 0; i < 2000; ++i) {
    const Halves values = arrays.next(hard_size(arrays, i));
    if (!all_finite(values)) continue;
    const Rational exact = exact_sum(values);
    if (exact == 0) continue;
    ++compared;
    const oracle::Outcomes expected = oracle::round_to_half(exact);
    comparison.equal_in_all_directions(
        expected, {static_cast<std::uint64_t>(i)},
        [&](const Attributes& attributes) { return sum_exact<binary16>(values, attributes); });
    // No sum of so few halves needs more than 53 digits.
    const Result<binary64> wide = sum_exact<binary64, binary16>(values);
    REQUIRE(oracle::exact_value(std::bit_cast<double>(wide.bits)) == exact);
    REQUIRE(wide.flags == Flags{});
  }
  comparison.finish(compared * oracle::direction_count);
  CHECK(compared > 1500);
}

TEST_CASE("exact sums of floats and doubles over their whole range, against rationals") {
  oracle::HardFloats floats(53);
  oracle::HardDoubles doubles(54);
  constexpr std::array modes{Rounding::nearest_even,    Rounding::nearest_away,    Rounding::toward_zero,
                             Rounding::toward_positive, Rounding::toward_negative, Rounding::to_odd};
  for (int i = 0; i < 600; ++i) {
    std::vector<std::uint32_t> narrow;
    std::vector<std::uint64_t> wide;
    Rational narrow_sum = 0, wide_sum = 0;
    while (narrow.size() < 8) {
      const std::uint32_t code = floats.next() & 0xfbffffff;  // below 2^2, so that nothing overflows
      narrow.push_back(code);
      narrow_sum += oracle::exact_value(static_cast<double>(std::bit_cast<float>(code)));
    }
    while (wide.size() < 4) {
      const std::uint64_t code = doubles.next() & 0xbfffffffffffffff;  // |x| < 2
      wide.push_back(code);
      wide_sum += oracle::exact_value(std::bit_cast<double>(code));
    }
    for (const Rounding mode : modes) {
      const auto to_float = sum_exact<binary32>(narrow, {mode});
      REQUIRE(oracle::is_rounded(std::bit_cast<float>(to_float.bits), narrow_sum, mode));
      const auto to_double = sum_exact<binary64, binary32>(narrow, {mode});
      REQUIRE(oracle::is_rounded(std::bit_cast<double>(to_double.bits), narrow_sum, mode));
      const auto of_doubles = sum_exact<binary64>(wide, {mode});
      REQUIRE(oracle::is_rounded(std::bit_cast<double>(of_doubles.bits), wide_sum, mode));
    }
  }
}

TEST_CASE("an exact sum of two values is their addition, in every format and with every attribute") {
  oracle::RandomBits random(55);
  for_each_format([&]<const Format & F>() {
    if constexpr (F.has_arithmetic()) {
      CAPTURE(name_of(F));
      for (int i = 0; i < 10'000; ++i) {
        const auto mask = static_cast<Bits<F>>(sign_mask<F> | (sign_mask<F> - 1));
        const auto a = static_cast<Bits<F>>(random.next() & mask);
        auto b = static_cast<Bits<F>>(random.next() & mask);
        if (i % 3 == 0) b = negate<F>(a);
        if (i % 3 == 1) b = static_cast<Bits<F>>((a ^ (b & (trailing_mask<F> | sign_mask<F>))) & mask);
        if (is_nan<F>(a) || is_nan<F>(b)) continue;
        const Attributes attributes{.rounding = static_cast<Rounding>(random.below(7)),
                                    .random_bits = random.next(),
                                    .saturate = random.below(2) == 0,
                                    .flush_to_zero = random.below(4) == 0,
                                    .denormals_are_zero = random.below(4) == 0,
                                    .tininess = static_cast<Tininess>(random.below(2)),
                                    .nan_policy = static_cast<NanPolicy>(random.below(3))};
        const std::array<Bits<F>, 2> values{a, b};
        REQUIRE(sum_exact<F>(values, attributes) == add<F>(a, b, attributes));
      }
    }
  });
}

TEST_CASE("the exact sum of special values depends on no order") {
  const auto sum = [](const Halves& values, const Attributes& attributes = {}) {
    return sum_exact<binary16>(values, attributes);
  };
  const Result<binary16> invalid{0xfe00, {.invalid = true}};
  CHECK(sum({0x7c00, 0x3c00}) == Result<binary16>{0x7c00, {}});
  CHECK(sum({0x3c00, 0xfc00, 0xfc00}) == Result<binary16>{0xfc00, {}});
  CHECK(sum({0x7c00, 0x3c00, 0xfc00}) == invalid);
  CHECK(sum({0x7e01, 0x7c00, 0xfc00}) == Result<binary16>{0xfe00, {}});
  CHECK(sum({0x3c00, 0x7d01}) == invalid);
  CHECK(sum({0x3c00, 0x7e01}, {.nan_policy = NanPolicy::canonical_nvidia}).bits == 0x7fff);
  CHECK(sum({0x8000, 0x8000}).bits == 0x8000);
  CHECK(sum({0x8000, 0x0000, 0x8000}).bits == 0);
  CHECK(sum({0x8000, 0x3c00, 0xbc00}, {Rounding::toward_negative}).bits == 0x8000);
  CHECK(sum({0x7bff, 0x7bff}, {.saturate = true}) ==
        Result<binary16>{0x7bff, {.inexact = true, .overflow = true}});
  CHECK(sum({0x0001, 0x0001}, {.denormals_are_zero = true}).bits == 0);
  CHECK(sum_exact<e2m1, binary16>(Halves{0x7e00}) == Result<e2m1>{0, {.invalid = true}});
  CHECK(sum_exact<e8m0, binary16>(Halves{0xfc00}) == Result<e8m0>{0xff, {.invalid = true}});
}

TEST_CASE("attributes reach every step") {
  const Halves subnormals{0x0001, 0x0001, 0x0001, 0x0001};
  const Halves large{0x7bff, 0x7bff, 0xfbff};
  for (const SumOrder<binary16>& order : sum_orders<binary16>) {
    CAPTURE(order.name);
    CHECK(order.sum(subnormals, {}).bits == 4);
    CHECK(order.sum(subnormals, {.denormals_are_zero = true}).bits == 0);
    CHECK(order.sum(subnormals, {.flush_to_zero = true}) ==
          Result<binary16>{0, {.inexact = true, .underflow = true}});
    CHECK(is_finite<binary16>(order.sum(large, {.saturate = true}).bits));
  }
}

TEST_CASE("the exact sum is the same in any order and however it is split") {
  oracle::HardArrays arrays(56);
  int sequential_sums_that_differ = 0;
  for (int i = 0; i < 300; ++i) {
    const Halves values = arrays.next(100);
    const Halves shuffled = arrays.shuffled(values);
    const Result<binary16> sum = sum_exact<binary16>(values);
    REQUIRE(sum_exact<binary16>(shuffled) == sum);
    sequential_sums_that_differ +=
        sum_sequential<binary16>(values).bits != sum_sequential<binary16>(shuffled).bits;

    std::array<ExactAccumulator<binary16>, 3> parts;
    for (const std::uint16_t value : shuffled) parts[static_cast<std::size_t>(arrays.below(3))].add(value);
    parts[2].merge(parts[0]);
    parts[2].merge(parts[1]);
    REQUIRE(parts[2].rounded<binary16>() == sum);
  }
  CHECK(sequential_sums_that_differ > 100);
}

TEST_CASE("merging keeps the signs of zeros and special values") {
  ExactAccumulator<binary16> negative_zero, positive_zero, infinity, nan;
  negative_zero.add(0x8000);
  positive_zero.add(0x0000);
  infinity.add(0xfc00);
  nan.add(0x7d01);
  ExactAccumulator<binary16> sum;
  sum.merge(negative_zero);
  CHECK(sum.rounded<binary16>() == Result<binary16>{0x8000, {}});
  sum.merge(positive_zero);
  CHECK(sum.rounded<binary16>() == Result<binary16>{0x0000, {}});
  CHECK(sum.rounded<binary16>({Rounding::toward_negative}) == Result<binary16>{0x8000, {}});
  sum.merge(infinity);
  CHECK(sum.rounded<binary16>() == Result<binary16>{0xfc00, {}});
  infinity.add(0x7c00);
  sum.merge(infinity);
  CHECK(sum.rounded<binary16>() == Result<binary16>{0xfe00, {.invalid = true}});
  negative_zero.merge(nan);
  CHECK(negative_zero.rounded<binary16>() == Result<binary16>{0xfe00, {.invalid = true}});
}

TEST_CASE("stochastic rounding of an exact sum sees 64 bits of the fraction and no more") {
  // In units in the last place of 1 the fraction of 1 + 2^-116 is 2^-64; 2^-200 is beyond all that is kept.
  const auto code = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  for (const double least : {0.0, 0x1p-200}) {
    const std::array values{code(least), code(0x1p-116), code(1)};
    const auto round = [&](std::uint64_t random_bits) {
      return sum_exact<binary64>(values, {.rounding = Rounding::stochastic, .random_bits = random_bits}).bits;
    };
    CHECK(round(0) == code(0x1.0000000000001p0));
    CHECK(round(1) == code(1));
  }
}

/// Halves whose sum is about 2^-10 of the sum of their magnitudes, or less.
Halves ill_conditioned(oracle::HardArrays& arrays, std::size_t size) {
  Halves values;
  while (values.size() < size) {
    const auto code = static_cast<std::uint16_t>(0x2c00 + arrays.below(0x2000));
    values.push_back(code);
    values.push_back(static_cast<std::uint16_t>((code ^ 0x8000) + arrays.below(3)));
  }
  return arrays.shuffled(values);
}

TEST_CASE("Higham's bounds hold on cancelling and on stagnating sums, and tell the orders apart") {
  oracle::HardArrays arrays(57);
  int beyond_pairwise_bound = 0, beyond_kahan_bound = 0;
  for (int i = 0; i < 200; ++i) {
    const std::size_t n = std::array<std::size_t, 4>{8, 60, 300, 1000}[static_cast<std::size_t>(i % 4)];
    // The sequential sum of equal values rounds the same way again and again.
    const Halves values = i % 8 < 4 ? ill_conditioned(arrays, n)
                                    : Halves(n, static_cast<std::uint16_t>(0x3c00 + arrays.below(0x400)));
    const Rational exact = exact_sum(values);
    Rational magnitudes = 0;
    for (const std::uint16_t value : values) magnitudes += abs(oracle::exact_value(value));
    const auto error = [&](const Result<binary16>& sum) {
      return Rational(abs(oracle::exact_value(sum.bits) - exact));
    };

    const Rational u(1, 2048), gamma = oracle::gamma(n - 1);
    const Rational pairwise_bound = oracle::gamma(std::bit_width(n - 1)) * magnitudes;
    const Rational sequential_error = error(sum_sequential<binary16>(values));
    REQUIRE(sequential_error <= gamma * magnitudes);
    REQUIRE(error(sum_pairwise<binary16>(values)) <= pairwise_bound);
    // One level of depth 5 or 8, or two.
    REQUIRE(error(sum_blocked_tree<binary16, 32>(values)) <= oracle::gamma(n <= 32 ? 5 : 10) * magnitudes);
    REQUIRE(error(sum_blocked_tree<binary16, 256>(values)) <= oracle::gamma(n <= 256 ? 8 : 16) * magnitudes);
    REQUIRE(error(sum_neumaier<binary16>(values)) <= u * abs(exact) + gamma * gamma * magnitudes);
    // 3u for 2u + O(n u^2), as n u is at most 0.15.
    if (n <= 300) REQUIRE(error(sum_kahan<binary16>(values)) <= 3 * u * magnitudes);
    REQUIRE(error(sum_exact<binary16>(values)) <= u * abs(exact));
    beyond_pairwise_bound += sequential_error > pairwise_bound;
    beyond_kahan_bound += sequential_error > 3 * u * magnitudes;
  }
  CHECK(beyond_pairwise_bound > 20);
  CHECK(beyond_kahan_bound > 20);
}

}  // namespace
}  // namespace fp16
