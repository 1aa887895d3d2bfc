/// sum, mean and variance, and the rounding and the order behind every reduction.

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sim/ops/mean.h"
#include "sim/ops/sum.h"
#include "sim/ops/sums.h"
#include "sim/ops/variance.h"
#include "tests/sim/ops/evaluation.h"
#include "tests/sim/ops/sum_oracle.h"

namespace {

using fp16::binary16;
using fp16::binary32;
using fp16::binary64;
using fp16::half;
using sim::Tensor;

constexpr double u = 0x1p-24;

}  // namespace

TEST_CASE("rounded_to_binary16 is the conversion to half and back") {
  const auto check = [](std::uint32_t bits) {
    const auto x = std::bit_cast<float>(bits);
    if (std::isnan(x)) return std::isnan(sim::rounded_to_binary16(x));
    return std::bit_cast<std::uint32_t>(sim::rounded_to_binary16(x)) ==
           std::bit_cast<std::uint32_t>(float(half(x)));
  };
  std::size_t wrong = 0;
  for (std::uint64_t bits = 0; bits <= 0xffffffff; bits += 1021)
    wrong += !check(static_cast<std::uint32_t>(bits));
  // Every value of binary16, every midpoint of two neighbours, and the floats on either side of both.
  for (std::uint32_t code = 0; code < 0x7c00; ++code) {
    const float value = half::from_bits(static_cast<std::uint16_t>(code));
    const float next =
        code == 0x7bff ? 65536.0f : float(half::from_bits(static_cast<std::uint16_t>(code + 1)));
    for (const float x : {value, (value + next) / 2}) {
      const auto bits = std::bit_cast<std::uint32_t>(x);
      for (const std::uint32_t near : {bits, bits + 1, bits == 0 ? 0 : bits - 1})
        wrong += !check(near) + !check(near | 0x80000000u);
    }
  }
  for (const std::uint32_t bits : {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xff800001u, 0x7f7fffffu, 1u})
    wrong += !check(bits);
  CHECK(wrong == 0);
}

TEST_CASE("sum, mean and variance by hand") {
  const Tensor x = tensor_of({2, 3}, {1, 2, 3, 4, 5, 9});
  Evaluation sum(sim::sum, {x}), mean(sim::mean, {x}), variance(sim::variance, {x});
  CHECK(sum.output.shape() == sim::Shape{1});
  CHECK(values_of(sum.output) == std::vector<double>{24});
  CHECK(values_of(mean.output) == std::vector<double>{4});
  CHECK(values_of(variance.output) == std::vector<double>{8});  // (9 + 4 + 1 + 0 + 1 + 25) / 5
  const Tensor dy = tensor_of({1}, {5});
  CHECK(values_of(sum.backward(dy)[0]) == std::vector<double>(6, 5));
  CHECK(values_of(mean.backward(dy)[0]) == std::vector<double>(6, 5.0f / 6));
  CHECK(values_of(variance.backward(dy)[0]) == std::vector<double>{-6, -4, -2, 0, 2, 10});
  CHECK(std::isnan(Evaluation(sim::variance, {tensor_of({1}, {3})}).output.element(0)));
}

TEST_CASE("sums of any length have the bits of their order: blocks, pairwise, one chain in binary16") {
  const sim::RandomStream random(5, "terms");
  std::vector<double> terms(5000);
  for (std::size_t i = 0; i < terms.size(); ++i) terms[i] = half(random.normal(i) + 0.5f);
  std::vector<std::size_t> lengths{255, 256, 257, 511, 512, 513, 767, 768, 769, 1280, 2047, 2048, 4095, 5000};
  for (std::size_t n = 0; n < 70; ++n) lengths.push_back(n);
  const auto check = [&]<class Real>(fp16::Format format, Real) {
    for (const std::size_t n : lengths) {
      const auto first = std::span(terms).first(n);
      const std::vector<Real> values(first.begin(), first.end());
      REQUIRE(sim::interleaved_sum(format, std::span<const Real>(values)) ==
              sum_oracle::along_row(format, first));
      const auto doubled = [](Real value) { return 2 * value; };
      REQUIRE(sim::interleaved_sum<Real>(format, doubled, n, values.data()) ==
              2 * sum_oracle::along_row(format, first));
      sim::ColumnSums<Real> columns(format, 2);
      for (const Real value : values) columns.add_row(std::array{value, -2 * value}.data());
      const std::vector<Real> totals = std::move(columns).totals();
      REQUIRE(totals[0] == sum_oracle::down_column(format, first));
      REQUIRE(totals[1] == -2 * totals[0]);
    }
    // In pieces of whole blocks.
    sim::InterleavedSum<Real> pieces(format);
    const std::vector<Real> values(terms.begin(), terms.end());
    for (std::size_t i = 0; i < values.size(); i += 512)
      pieces.add(std::span(values).subspan(i, std::min<std::size_t>(512, values.size() - i)));
    CHECK(std::move(pieces).total() == sum_oracle::along_row(format, terms));
  };
  check(binary16, float{});
  check(binary32, float{});
  check(binary64, double{});
}

TEST_CASE("a NaN among the terms makes the sum the default NaN, whatever its own bits are") {
  std::vector<float> terms(300);
  for (std::size_t i = 0; i < terms.size(); ++i)
    terms[i] = std::bit_cast<float>(i % 2 ? 0xffc12345u : 0x7fc54321u);
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  const std::uint32_t default_nan = bits(fp16::elementary::default_nan<float>);
  CHECK(bits(sim::interleaved_sum(binary32, std::span<const float>(terms))) == default_nan);
  sim::ColumnSums<float> columns(binary32, 3);
  for (std::size_t row = 0; row < 40; ++row) columns.add_row(terms.data());
  for (const float total : std::move(columns).totals()) CHECK(bits(total) == default_nan);
}

TEST_CASE("sum and mean in binary32 and binary64 lie within the bound of their order") {
  for (const std::size_t n : {1, 17, 2048, 2049, 5000, 100003}) {
    const Tensor x = normal_tensor({n}, "x", binary32, 1, 0.5f);
    long double sum = 0, magnitudes = 0;
    for (const float v : x.elements<float>()) {
      sum += v;
      magnitudes += std::abs(v);
    }
    const double bound =
        sum_oracle::gamma(sum_oracle::roundings_along_row(n)) * static_cast<double>(magnitudes);
    CHECK(std::abs(Evaluation(sim::sum, {x}).output.element(0) - sum) <= bound);
    CHECK(std::abs(Evaluation(sim::mean, {x}).output.element(0) - sum / n) <=
          (bound + std::abs(sum) * u) / n);
    Tensor wide({n}, binary64);
    sim::copy_rounded({&wide}, x);
    const Evaluation e(sim::sum, {wide}, {}, {.output = binary64, .reductions = binary64});
    CHECK(std::abs(e.output.element(0) - sum) <= bound * 0x1p-29);
  }
}

TEST_CASE("sum, mean and variance in binary16: the interleaved order, terms and partial sums are halves") {
  for (const std::size_t n : {2, 16, 100, 2048, 2500, 5000}) {
    const Tensor x = normal_tensor({n}, "x", binary16, 1, 0.25f);
    std::vector<float> terms = x.to_floats();
    const half sum = interleaved_half_sum(terms);
    CHECK(Evaluation(sim::sum, {x}, {}, pure_fp16).output.element(0) == float(sum));
    const float mean = half(float(sum) / static_cast<float>(n));
    CHECK(Evaluation(sim::mean, {x}, {}, pure_fp16).output.element(0) == mean);
    for (float& t : terms) t = (t - mean) * (t - mean);
    const float squares = interleaved_half_sum(terms);
    Evaluation variance(sim::variance, {x}, {}, pure_fp16);
    CHECK(variance.output.element(0) == float(half(squares / static_cast<float>(n - 1))));
    const Tensor dx = variance.backward(tensor_of({1}, {3}, binary16))[0];
    for (std::size_t i = 0; i < n; ++i) {
      REQUIRE(dx.element(i) ==
              float(half((float(x.element(i)) - mean) * (2 * 3.0f / static_cast<float>(n - 1)))));
    }
  }
}

TEST_CASE("reductions in binary16 overflow and swallow what binary32 holds") {
  const Tensor large = tensor_of({64}, std::vector<float>(64, 2048), binary16);
  CHECK(std::isinf(Evaluation(sim::mean, {large}, {}, pure_fp16).output.element(0)));
  CHECK(Evaluation(sim::mean, {large}, {}, {.output = binary16}).output.element(0) == 2048);
  // Each of the 16 partial sums stops at 2048, where 1 is half a unit in the last place.
  const Tensor ones = tensor_of({16 * 4096}, std::vector<float>(16 * 4096, 1), binary16);
  CHECK(Evaluation(sim::sum, {ones}, {}, {.reductions = binary16}).output.element(0) == 16 * 2048);
  CHECK(Evaluation(sim::sum, {ones}).output.element(0) == 16 * 4096);
}

TEST_CASE("reductions pass NaN and infinity on") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const EvaluationSetting& setting : {EvaluationSetting{}, pure_fp16}) {
    const auto value = [&](const sim::Operation& operation, std::initializer_list<float> values) {
      return Evaluation(operation, {tensor_of({values.size()}, values, setting.output)}, {}, setting)
          .output.element(0);
    };
    CHECK(value(sim::sum, {1, infinity, 2}) == infinity);
    CHECK(value(sim::mean, {1, -infinity, 2}) == -infinity);
    CHECK(std::isnan(value(sim::sum, {infinity, -infinity})));
    CHECK(std::isnan(value(sim::mean, {1, std::numeric_limits<float>::quiet_NaN()})));
    CHECK(std::isnan(value(sim::variance, {1, infinity})));
  }
}

TEST_CASE("reductions: the same bytes for 1 and 2 threads, forward and backward") {
  for (const fp16::Format format : {binary16, binary32}) {
    const Tensor x = normal_tensor({70001}, "x", format), dy = tensor_of({1}, {3}, format);
    for (const sim::Operation* operation : {&sim::sum, &sim::mean, &sim::variance}) {
      Evaluation one(*operation, {x}, {}, {.output = format}),
          two(*operation, {x}, {}, {.output = format, .threads = 2});
      CHECK(same_bytes(one.output, two.output));
      CHECK(same_bytes(one.backward(dy)[0], two.backward(dy)[0]));
      CHECK(one.counts == two.counts);
    }
  }
}
