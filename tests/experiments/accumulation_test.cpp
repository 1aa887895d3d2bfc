/// Oracles: values derived by hand, exact integers, and the library's own whole dot products.

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "experiments/accumulation/accumulators.h"
#include "experiments/accumulation/errors.h"
#include "experiments/accumulation/loss_reduction.h"
#include "experiments/accumulation/operands.h"
#include "fp16/codec.h"
#include "fp16/dot.h"
#include "fp16/mma.h"
#include "tests/experiments/silent_run.h"

namespace {

using namespace experiments::accumulation;
using boost::multiprecision::cpp_rational;
using experiments::Run;
using fp16::binary16;
using fp16::binary32;
using Codes = std::vector<std::uint16_t>;

constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

const std::vector<Accumulator>& all() {
  static const std::vector<Accumulator> rows = accumulators();
  return rows;
}

const Accumulator& named(const std::string& name) {
  const auto found = std::ranges::find(all(), name, &Accumulator::name);
  REQUIRE(found != all().end());
  return *found;
}

const Distribution& distribution(const std::string& name) {
  const auto found = std::ranges::find(distributions(), name, &Distribution::name);
  REQUIRE(found != distributions().end());
  return *found;
}

cpp_rational exact(double value) {
  return cpp_rational(value);
}

cpp_rational value_of(std::uint16_t code) {
  return exact(fp16::decode<binary16>(code));
}

}  // namespace

TEST_CASE("accumulation: every registered chain and order is an accumulator, each name once") {
  std::map<std::string, int> names;
  for (const Accumulator& accumulator : all()) {
    ++names[accumulator.name];
    CHECK((accumulator.order == nullptr) != (accumulator.step == nullptr));
  }
  CHECK(names.size() == 3 + 2 * fp16::tensor_cores.size() + fp16::sum_orders<binary16>.size() - 1);
  CHECK(std::ranges::all_of(names, [](const auto& entry) { return entry.second == 1; }));
  for (const fp16::TensorCore& core : fp16::tensor_cores) {
    CHECK(named(std::string(core.name) + "_fp16").format == binary16);
    CHECK(named(std::string(core.name) + "_fp32").format == binary32);
  }
}

TEST_CASE("accumulation: a sum of ones ends where its step no longer reaches half an ulp") {
  // In binary16 from 2^k on numbers are 2^(k-10) apart, and a step of 2^(k-11) is a tie, which goes to the even
  // 2^k. In binary32 a tensor core drops ones below 2^(k - fraction bits), or sums below an ulp.
  const std::map<std::string, double> stagnating{
      {"fp16_fma", 2048},         {"fp16_mul_add", 2048},  {"fp32", 0x1p24},       {"volta_fp16", 8192},
      {"ampere_fp16", 16384},     {"hopper_fp16", 32768},  {"volta_fp32", 0x1p24}, {"ampere_fp32", 0x1p25},
      {"blackwell_fp32", 0x1p26}, {"fp16_neumaier", 4096},  // 2048, and 2048 in its correction
  };
  for (const auto& [name, value] : stagnating) {
    INFO(name);
    const SumOfOnes sum = sum_of_ones(named(name));
    CHECK(sum.outcome == SumOfOnes::Outcome::stagnates);
    CHECK(sum.value == value);
    CHECK(static_cast<double>(sum.ones) == value);
  }
  for (const char* name : {"fp16_pairwise", "fp16_blocked_tree_32", "fp16_kahan", "fp16_exact"}) {
    INFO(name);
    const SumOfOnes sum = sum_of_ones(named(name));
    CHECK(sum.outcome == SumOfOnes::Outcome::overflows);
    CHECK(sum.value == 32768);
    CHECK(sum.ones == 65536);
  }
}

TEST_CASE("accumulation: where ones stop depends on the direction of rounding") {
  struct End {
    SumOfOnes::Outcome outcome;
    double value;
    std::uint64_t ones;
  };
  using enum SumOfOnes::Outcome;
  // Away from 2048 every 1 is rounded to an ulp of 2: 1024 more to 4096, where a 1 is a quarter of an ulp. Upward
  // it is always a whole one: 1024 ones an octave from 2048 to 2^15, then 1023 to 65504, and the next overflows.
  const std::map<std::string, End> ends{{"fp16_nearest_away", {stagnates, 4096, 3072}},
                                        {"fp16_toward_zero", {stagnates, 2048, 2048}},
                                        {"fp16_toward_negative", {stagnates, 2048, 2048}},
                                        {"fp16_toward_positive", {overflows, 65504, 2048 + 4 * 1024 + 1024}},
                                        {"fp16_to_odd", {stagnates, 2050, 2049}}};
  const std::vector<Accumulator> directed = directed_additions();
  CHECK(directed.size() == ends.size());
  for (const Accumulator& accumulator : directed) {
    INFO(accumulator.name);
    const End& end = ends.at(accumulator.name);
    const SumOfOnes sum = sum_of_ones(accumulator);
    CHECK(sum.outcome == end.outcome);
    CHECK(sum.value == end.value);
    CHECK(sum.ones == end.ones);
  }
}

TEST_CASE("accumulation: the dots of prefixes are the whole dots of the library, also within a step") {
  const std::vector<std::size_t> lengths{1, 3, 16, 37, 64, 1000, 2049};
  for (const Distribution& row : distributions()) {
    const Operands operands = draw(row, 5, 0, lengths.back());
    const std::span<const std::uint16_t> a(operands.a), b(operands.b);
    const auto agrees = [&](const std::string& name, auto dot) {
      INFO(row.name, " ", name);
      const std::vector<double> dots = dots_of_prefixes(named(name), a, b, lengths);
      REQUIRE(dots.size() == lengths.size());
      for (std::size_t i = 0; i < lengths.size(); ++i)
        CHECK(dots[i] == dot(a.first(lengths[i]), b.first(lengths[i])));
    };
    agrees("fp32", [](auto x, auto y) {
      return fp16::decode<binary32>(fp16::dot_fma<binary16, binary32>(x, y).bits);
    });
    agrees("fp16_fma",
           [](auto x, auto y) { return fp16::decode<binary16>(fp16::dot_fma<binary16>(x, y).bits); });
    agrees("fp16_mul_add",
           [](auto x, auto y) { return fp16::decode<binary16>(fp16::dot_mul_add<binary16>(x, y).bits); });
    for (const fp16::TensorCore& core : fp16::tensor_cores) {
      agrees(std::string(core.name) + "_fp32",
             [&](auto x, auto y) { return fp16::decode<binary32>(fp16::mma_dot<binary32>(core, x, y, 0)); });
      agrees(std::string(core.name) + "_fp16",
             [&](auto x, auto y) { return fp16::decode<binary16>(fp16::mma_dot<binary16>(core, x, y, 0)); });
    }
    agrees("fp16_kahan", [](auto x, auto y) {
      Codes products;
      for (std::size_t k = 0; k < x.size(); ++k)
        products.push_back(fp16::multiply<binary16>(x[k], y[k]).bits);
      return fp16::decode<binary16>(fp16::sum_kahan<binary16>(products).bits);
    });
  }
}

TEST_CASE("accumulation: the bounds are what theory says of 1024 products") {
  const auto is = [](const std::string& name, double worst_case, double probabilistic) {
    INFO(name);
    const ErrorBounds bounds = error_bounds(named(name), 1024);
    CHECK((bounds.worst_case == worst_case || (std::isnan(worst_case) && std::isnan(bounds.worst_case))));
    CHECK((bounds.probabilistic == doctest::Approx(probabilistic).epsilon(1e-15) ||
           (std::isnan(probabilistic) && std::isnan(bounds.probabilistic))));
  };
  is("fp32", 1024 * 0x1p-24, 32 * 0x1p-24);
  is("fp16_fma", 0.5, 32 * 0x1p-11);
  is("fp16_mul_add", 0.5, 32 * 0x1p-11);
  is("fp16_pairwise", 11 * 0x1p-11, std::sqrt(11) * 0x1p-11);
  is("fp16_blocked_tree_32", 11 * 0x1p-11, std::sqrt(11) * 0x1p-11);   // two levels of five
  is("fp16_blocked_tree_256", 17 * 0x1p-11, std::sqrt(17) * 0x1p-11);  // two levels of eight
  is("fp16_exact", 2 * 0x1p-11, std::sqrt(2) * 0x1p-11);
  is("fp16_kahan", none, none);
  is("volta_fp32", 256 * (5 * 0x1p-23 + 0x1p-23), none);
  is("hopper_fp32", 64 * (17 * 0x1p-25 + 0x1p-23), none);
  is("hopper_fp16", 64 * (17 * 0x1p-25 + 0x1p-11), 8 * (17 * 0x1p-25 + 0x1p-11));
}

TEST_CASE("accumulation: the vectors have their distributions, and short ones begin the long ones") {
  for (const Distribution& row : distributions()) {
    INFO(row.name);
    const Operands operands = draw(row, 3, 1, 4096), shorter = draw(row, 3, 1, 100);
    CHECK(std::equal(shorter.a.begin(), shorter.a.end(), operands.a.begin()));
    CHECK(std::equal(shorter.b.begin(), shorter.b.end(), operands.b.begin()));
    CHECK(draw(row, 3, 2, 4096).a != operands.a);
    CHECK(draw(row, 4, 1, 4096).b != operands.b);
    CHECK(operands.a != operands.b);
  }
  double sum = 0, squares = 0;
  for (const std::uint16_t code : draw(distribution("uniform"), 0, 0, 4096).a) {
    const double x = fp16::decode<binary16>(code);
    CHECK((0 <= x && x <= 1));
    sum += x;
  }
  CHECK(std::fabs(sum / 4096 - 0.5) < 5 * std::sqrt(1 / 12.0 / 4096));  // five standard errors
  for (const std::uint16_t code : draw(distribution("normal"), 0, 0, 4096).a)
    squares += std::pow(fp16::decode<binary16>(code), 2);
  CHECK(std::fabs(squares / 4096 - 1) < 5 * std::sqrt(2 / 4096.0));
  int negative = 0, low = 0, zero = 0;
  for (const std::uint16_t code : draw(distribution("gradient"), 0, 0, 4096).a) {
    const double x = fp16::decode<binary16>(code), size = std::fabs(x);
    CHECK((0x1p-24 <= size && size <= 0x1p-8));
    negative += x < 0;
    low += size < 0x1p-16;
  }
  for (const std::uint16_t code : draw(distribution("relu"), 0, 0, 4096).a) zero += code == 0;
  for (const int half : {negative, low, zero}) CHECK(std::abs(half - 2048) < 5 * 32);
}

TEST_CASE(
    "accumulation: errors are those of exact rationals, keep their bounds, and do not know of threads") {
  const Options options{.seed = 7, .vectors = 3, .max_length_log2 = 8};
  test::SilentRun one(1), two(2);
  const Errors errors = measure_errors(all(), options, one.run),
               again = measure_errors(all(), options, two.run);
  const std::size_t rows = distributions().size() * all().size() * lengths(options).size();
  REQUIRE(errors.dots.size() == rows);
  REQUIRE(errors.sums.size() == rows);
  for (std::size_t i = 0; i < rows; ++i) {
    CHECK(errors.dots[i].relative.mean.mean == again.dots[i].relative.mean.mean);
    CHECK(errors.sums[i].backward.largest == again.sums[i].backward.largest);
  }
  for (const bool products : {true, false}) {
    for (const char* name : {"fp16_fma", "fp16_neumaier", "volta_fp32"}) {
      double relative = 0, backward = 0, bias = 0, largest = 0;
      for (int vector = 0; vector < options.vectors; ++vector) {
        Operands operands = draw(distribution("normal"), options.seed, vector, 128);
        if (!products) operands.b.assign(128, 0x3c00);
        cpp_rational sum = 0, magnitudes = 0;
        for (std::size_t k = 0; k < 128; ++k) {
          const cpp_rational product = value_of(operands.a[k]) * value_of(operands.b[k]);
          sum += product;
          magnitudes += abs(product);
        }
        const std::size_t length = 128;
        const cpp_rational computed =
            exact(dots_of_prefixes(named(name), operands.a, operands.b, std::span(&length, 1))[0]);
        const cpp_rational error = abs(cpp_rational(computed - sum));
        relative += static_cast<double>(cpp_rational(error / abs(sum))) / options.vectors;
        backward += static_cast<double>(cpp_rational(error / magnitudes)) / options.vectors;
        bias += static_cast<double>(cpp_rational((abs(computed) - abs(sum)) / magnitudes)) / options.vectors;
        largest = std::max(largest, static_cast<double>(cpp_rational(error / abs(sum))));
      }
      INFO(name, products ? " dot" : " sum");
      const Measured& row = find(products ? errors.dots : errors.sums, "normal", name, 7);
      // The exact values that the errors are taken from are rounded to binary64.
      const auto near = [](double value) { return doctest::Approx(value).epsilon(1e-6); };
      CHECK(row.relative.mean.mean == near(relative));
      CHECK(row.relative.largest == near(largest));
      CHECK(row.backward.mean.mean == near(backward));
      CHECK(row.backward_bias == near(bias));
      CHECK(row.relative.mean.count == 3);
      CHECK(row.not_finite == 0);
    }
  }
  std::size_t bounded = 0;
  for (const Measured& row : errors.dots) {
    const double bound = row.bounds().worst_case;
    // Products of gradients underflow, of which the bounds do not speak. At most 256 u = 1/8: 1 / (1 - 1/8) for what
    // is of second order.
    if (std::isnan(bound) || row.distribution->name == "gradient") continue;
    ++bounded;
    INFO(row.distribution->name, " ", row.accumulator->name, " ", row.length_log2);
    CHECK(row.backward.largest <= 8.0 / 7 * bound);
  }
  CHECK(bounded == 3 * (all().size() - 2) * 5);  // all but the compensated sums
}

TEST_CASE("accumulation: a sum beyond 65504 has an infinite error and is counted") {
  const Options options{.seed = 0, .vectors = 2, .max_length_log2 = 19};
  test::SilentRun silent(2);
  const std::vector<Accumulator> two{named("fp16_exact"), named("fp32")};
  const Errors errors = measure_errors(two, options, silent.run);
  const Measured &past = find(errors.dots, "uniform", "fp16_exact", 19),
                 &within = find(errors.dots, "uniform", "fp16_exact", 17);
  CHECK(past.relative.mean.mean == inf);  // about 2^17
  CHECK(past.backward.largest == inf);
  CHECK(past.not_finite == 2);
  CHECK(within.not_finite == 0);
  CHECK(within.relative.largest < 2 * 0x1p-11);
  CHECK(find(errors.dots, "uniform", "fp32", 19).not_finite == 0);
}

TEST_CASE(
    "accumulation: the mean of equal losses stalls in a chain, overflows in a tree, and is right in FP32") {
  const Codes ones(std::size_t{1} << max_batch_log2, 0x3c00), twos(ones.size(), 0x4000),
      zeros(ones.size(), 0);
  for (const MeanMethod& method : mean_methods()) {
    INFO(name_of(method.loss), " ", name_of(method.reduction), " ", name_of(method.normalisation));
    const bool l1 = method.loss == Loss::l1;
    const double loss = l1 ? 1 : 4;  // |1 - 0| and (2 - 0)^2
    const std::vector<double> means = means_of_prefixes(method, l1 ? ones : twos, zeros),
                              correct = exact_means_of_prefixes(method.loss, l1 ? ones : twos, zeros);
    REQUIRE(means.size() == max_batch_log2 + 1);
    for (int batch_log2 = 0; batch_log2 <= max_batch_log2; ++batch_log2) {
      const double batch = std::ldexp(1.0, batch_log2);
      // Shares are powers of two above 2^-24, so that division first changes the units alone.
      double expected = loss;
      if (method.reduction == Reduction::fp16_sequential) expected = loss * std::min(1.0, 2048 / batch);
      const bool divided_last = method.normalisation == Normalisation::sum_then_divide;
      if (method.reduction == Reduction::fp16_pairwise && divided_last && loss * batch > 65504)
        expected = inf;
      CHECK(means[static_cast<std::size_t>(batch_log2)] == expected);
      CHECK(correct[static_cast<std::size_t>(batch_log2)] == loss);
    }
  }
}

TEST_CASE("accumulation: a mean fails from the batch on from which no larger one is right") {
  const auto mean_of = [](const std::vector<double>& errors) {
    MeasuredMean mean{.method = {}, .errors = {}};
    for (const double error : errors) {
      mean.errors.push_back({.batch_log2 = static_cast<int>(mean.errors.size()),
                             .error = {},
                             .largest = error,
                             .not_finite = std::isinf(error) ? 1 : 0});
    }
    return mean;
  };
  CHECK(!mean_of({0, 0.5, failing_error}).failure().has_value());
  const auto stalled = mean_of({0.5, 0, 0.02, 0.5}).failure();
  REQUIRE(stalled.has_value());
  CHECK(stalled->kind == Failure::Kind::stalls);
  CHECK(stalled->batch_log2 == 2);
  const auto overflowed = mean_of({0, 0, 0, inf}).failure();
  REQUIRE(overflowed.has_value());
  CHECK(overflowed->kind == Failure::Kind::overflows);
  CHECK(overflowed->batch_log2 == 3);
}

TEST_CASE("accumulation: losses of random predictions fail as their mean magnitudes say") {
  test::SilentRun silent(2);
  const std::vector<MeasuredMean> means = measure_means(1, 2, silent.run);
  REQUIRE(means.size() == mean_methods().size());
  for (const MeasuredMean& mean : means) {
    INFO(name_of(mean.method.loss), " ", name_of(mean.method.reduction), " ",
         name_of(mean.method.normalisation));
    const std::optional<Failure> failure = mean.failure();
    // E |p - t| = 2 / sqrt(pi) = 1.13 and E (p - t)^2 = 2: of 2^16 and of 2^15 values the sum is about 74000 and
    // just 65536.
    const bool overflows = mean.method.reduction == Reduction::fp16_pairwise &&
                           mean.method.normalisation == Normalisation::sum_then_divide;
    if (overflows) {
      REQUIRE(failure.has_value());
      CHECK(failure->kind == Failure::Kind::overflows);
      if (mean.method.loss == Loss::l1) CHECK(failure->batch_log2 == 16);
    } else if (mean.method.reduction == Reduction::fp16_sequential) {
      REQUIRE(failure.has_value());
      CHECK(failure->kind == Failure::Kind::stalls);
      CHECK(mean.errors.back().ratio < 0.3);
    } else {
      CHECK(!failure.has_value());
      CHECK(mean.errors.back().ratio == doctest::Approx(1).epsilon(2e-3));
    }
  }
}
