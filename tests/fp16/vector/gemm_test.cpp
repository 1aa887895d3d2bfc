#include "fp16/gemm.h"

#include <doctest/doctest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fp16/half.h"
#include "fp16/mma.h"
#include "tests/fp16/vector/gemm_matrix.h"

namespace {

using fp16::Accumulation;
using fp16::ChainStart;
using fp16::half;
using fp16::TensorCoreAccumulation;
using test::bits_of;
using test::Matrix;
using test::Sizes;

constexpr Accumulation float_chains[] = {Accumulation::fp32_fma_chain, Accumulation::fp16_fma_chain,
                                         Accumulation::fp16_mul_add_chain};

// Below, at and beyond every tile and block edge: 1, tile rows 4/6/8/12, tile columns 4..32, blocks of 120 to
// 128, 256 and 1024.
constexpr Sizes shapes[] = {{1, 1, 1},     {1, 5, 33},     {7, 3, 1},     {5, 17, 31},  {12, 32, 32},
                            {13, 256, 40}, {129, 257, 33}, {25, 513, 65}, {3, 40, 1030}};

/// Normal numbers over 12 octaves and more; with `specials`, one code in 64 is any.
auto normal_halves(std::mt19937& random, bool specials) {
  return [&random, specials, normal = std::normal_distribution<float>()]() mutable {
    if (specials && random() % 64 == 0) return static_cast<std::uint16_t>(random());
    return half(std::ldexp(normal(random), -static_cast<int>(random() % 12))).bits();
  };
}

float naive_chain(const Matrix& a, const Matrix& b, std::size_t i, std::size_t j, Accumulation accumulation) {
  half in_half(0.0f);
  float in_float = 0;
  for (std::size_t k = 0; k < a.columns; ++k) {
    const half x = a.at(i, k), y = b.at(k, j);
    in_half = accumulation == Accumulation::fp16_fma_chain ? fp16::fma(x, y, in_half) : x * y + in_half;
    in_float = std::fma(float(x), float(y), in_float);
  }
  return accumulation == Accumulation::fp32_fma_chain ? in_float : float(in_half);
}

bool same(float got, float expected) {
  if (std::isnan(expected)) return std::bit_cast<std::uint32_t>(got) == 0x7FC00000u;
  return std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(expected);
}

}  // namespace

TEST_CASE("gemm: every output is the stated chain, on every path, in every layout, specials included") {
  std::mt19937 random(1);
  for (const auto [m, k, n] : shapes) {
    for (const bool specials : {false, true}) {
      const Matrix a(m, k, normal_halves(random, specials)), b(k, n, normal_halves(random, specials));
      for (const Accumulation accumulation : float_chains) {
        std::vector<float> expected(m * n);
        for (std::size_t i = 0; i < m; ++i) {
          for (std::size_t j = 0; j < n; ++j) expected[i * n + j] = naive_chain(a, b, i, j, accumulation);
        }
        for (const fp16::VectorPath path : fp16::available_vector_paths()) {
          for (int layout = 0; layout < 16; ++layout) {
            std::vector<float> c(m * n, -1);
            fp16::gemm(a.operand(layout & 1, layout & 4), b.operand(layout & 2, layout & 8), c.data(), n,
                       accumulation, {.path = path});
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < c.size(); ++i) wrong += !same(c[i], expected[i]);
            INFO(name_of(accumulation), " ", name_of(path), " ", m, "x", k, "x", n, " layout ", layout);
            REQUIRE(wrong == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("gemm: every part of a tile, as large as it may be") {
  std::mt19937 random(8);
  constexpr std::size_t k = 3, most_rows = 13, most_columns = 33;  // beyond 12 x 32 by one
  const Matrix a(most_rows, k, normal_halves(random, false)),
      b(k, most_columns, normal_halves(random, false));
  for (const Accumulation accumulation : float_chains) {
    for (const fp16::VectorPath path : fp16::available_vector_paths()) {
      std::size_t wrong = 0;
      for (std::size_t m = 1; m <= most_rows; ++m) {
        for (std::size_t n = 1; n <= most_columns; ++n) {
          const bool as_floats = (m + n) % 2 == 0;
          fp16::MatrixOperand left = a.operand(false, as_floats), right = b.operand(false, as_floats);
          left.rows = m;
          right.columns = n;
          std::vector<float> c((m + 1) * most_columns, 7);  // a row more, which stays as it is
          fp16::gemm(left, right, c.data(), most_columns, accumulation, {.path = path});
          for (std::size_t i = 0; i <= m; ++i) {
            for (std::size_t j = 0; j < most_columns; ++j) {
              const float expected = i < m && j < n ? naive_chain(a, b, i, j, accumulation) : 7;
              wrong += !same(c[i * most_columns + j], expected);
            }
          }
        }
      }
      INFO(name_of(accumulation), " ", name_of(path));
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("gemm: bfloat16 operands are the floats that they are the upper halves of") {
  std::mt19937 random(9);
  constexpr std::size_t m = 21, k = 270, n = 35;
  std::vector<std::uint16_t> a(m * k), b(k * n);
  std::vector<float> wide_a, wide_b;
  const auto draw = [&](std::vector<std::uint16_t>& codes, std::vector<float>& values) {
    for (std::uint16_t& code : codes) {
      code = static_cast<std::uint16_t>(
          std::bit_cast<std::uint32_t>(std::normal_distribution<float>()(random)) >> 16);
      values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16));
    }
  };
  draw(a, wide_a);
  draw(b, wide_b);
  for (const fp16::VectorPath path : fp16::available_vector_paths()) {
    for (const bool transposed : {false, true}) {
      const auto product = [&](const void* left, const void* right, const fp16::Format& storage, auto& c) {
        const fp16::MatrixOperand x{left, storage, m, k, transposed ? 1 : k, transposed ? m : 1},
            y{right, storage, k, n, transposed ? 1 : n, transposed ? k : 1};
        if constexpr (std::is_same_v<decltype(c), std::vector<float>&>) {
          fp16::gemm(x, y, c.data(), n, Accumulation::fp32_fma_chain, {.path = path});
        } else {
          fp16::gemm(x, y, c.data(), n, {.path = path});
        }
      };
      std::vector<float> narrow(m * n), wide(m * n, 1);
      product(a.data(), b.data(), fp16::bfloat16, narrow);
      product(wide_a.data(), wide_b.data(), fp16::binary32, wide);
      CHECK(narrow == wide);
      std::vector<double> narrow64(m * n), wide64(m * n, 1);
      product(a.data(), b.data(), fp16::bfloat16, narrow64);
      product(wide_a.data(), wide_b.data(), fp16::binary32, wide64);
      CHECK(narrow64 == wide64);
    }
  }
}

TEST_CASE("gemm: a chain goes on where it stopped, and rows of C may be longer than the product") {
  std::mt19937 random(2);
  const std::size_t m = 9, k = 300, n = 37, stride = 50;
  const Matrix a(m, k, normal_halves(random, false)), b(k, n, normal_halves(random, false));
  const auto check = [&](const auto& accumulation, std::size_t split) {
    std::vector<float> whole(m * stride, 7), parts(m * stride, 7);
    fp16::gemm(a.operand(false), b.operand(false), whole.data(), stride, accumulation);
    fp16::MatrixOperand a1 = a.operand(false), a2 = a1, b1 = b.operand(false), b2 = b1;
    a1.columns = b1.rows = split;
    a2.columns = b2.rows = k - split;
    a2.data = a.row_major.data() + split;
    b2.data = b.row_major.data() + split * n;
    fp16::gemm(a1, b1, parts.data(), stride, accumulation);
    fp16::gemm(a2, b2, parts.data(), stride, accumulation, {.start = ChainStart::from_output});
    CHECK(whole == parts);
    CHECK(whole[n] == 7);  // beyond the row's end nothing is written
  };
  for (const Accumulation accumulation : float_chains) check(accumulation, 111);
  for (const fp16::TensorCore& core : fp16::tensor_cores) {
    check(TensorCoreAccumulation{core, fp16::binary32}, 112);  // a multiple of every step
    check(TensorCoreAccumulation{core, fp16::binary16}, 112);
  }
}

TEST_CASE("gemm: float and double operands agree with Eigen within the bound of a chain") {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  const std::size_t m = 33, k = 200, n = 45;
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  RowMajor a(m, k), b(k, n);
  for (double& x : a.reshaped()) x = static_cast<float>(normal(random));
  for (double& x : b.reshaped()) x = static_cast<float>(normal(random));
  const RowMajor exact = a.cast<double>() * b.cast<double>(), magnitude = a.cwiseAbs() * b.cwiseAbs();
  const Eigen::Matrix<float, -1, -1, Eigen::RowMajor> a32 = a.cast<float>(), b32 = b.cast<float>();
  for (const fp16::VectorPath path : fp16::available_vector_paths()) {
    std::vector<float> c32(m * n);
    fp16::gemm({a32.data(), fp16::binary32, m, k, k, 1}, {b32.data(), fp16::binary32, k, n, n, 1}, c32.data(),
               n, Accumulation::fp32_fma_chain, {.path = path});
    std::vector<double> c64(m * n);
    fp16::gemm({a.data(), fp16::binary64, m, k, k, 1}, {b32.data(), fp16::binary32, k, n, n, 1}, c64.data(),
               n, {.path = path});
    // k roundings, each at most u of a partial sum that |a||b| bounds: k u / (1 - k u) (Higham 2002,
    // section 3.1); Eigen's own binary64 error has the same form and is added.
    const double u32 = 0x1p-24 * k / (1 - 0x1p-24 * k), u64 = 0x1p-53 * k / (1 - 0x1p-53 * k);
    for (std::size_t i = 0; i < m * n; ++i) {
      REQUIRE(std::abs(c32[i] - exact.data()[i]) <= (u32 + u64) * magnitude.data()[i]);
      REQUIRE(std::abs(c64[i] - exact.data()[i]) <= 2 * u64 * magnitude.data()[i]);
    }
  }
}

TEST_CASE("gemm: the double chain has the same bits on every path") {
  std::mt19937 random(4);
  std::normal_distribution<double> normal;
  const std::size_t m = 14, k = 261, n = 35;
  std::vector<double> a(m * k), b(k * n);
  for (double& x : a) x = normal(random);
  for (double& x : b) x = normal(random);
  for (const fp16::VectorPath path : fp16::available_vector_paths()) {
    std::vector<double> c(m * n);
    fp16::gemm({a.data(), fp16::binary64, m, k, k, 1}, {b.data(), fp16::binary64, k, n, n, 1}, c.data(), n,
               {.path = path});
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        double chain = 0;
        for (std::size_t l = 0; l < k; ++l) chain = std::fma(a[i * k + l], b[l * n + j], chain);
        REQUIRE(c[i * n + j] == chain);
      }
    }
  }
}

namespace {

/// Two floats whose product is 2^exponent and a little more or less, so that beside a number of 53 digits it may be lost.
std::pair<float, float> almost_power(std::mt19937& random, int exponent) {
  const float step = std::ldexp(static_cast<float>(1 + random() % 3), -23);
  const float other = random() % 4 == 0 ? 0 : random() % 2 == 0 ? step : -step;
  const int first = exponent / 2;
  return {std::ldexp(1 + step, first), std::ldexp(1 + other, exponent - first)};
}

/// A chain of floats that is halfway, almost, between two of them again and again: what a and b hold makes it advance
/// by about half a unit in the last place, up or down, from `start`.
struct HalfwayChain {
  static constexpr float small_start = 0x1p-90f;
  std::vector<float> a, b;

  HalfwayChain(std::mt19937& random, float start, std::size_t length) {
    if (std::abs(start) == small_start) {  // lost in a product of 25 digits, which is halfway itself
      a.assign(length, 0.0f);
      a[0] = 1 + static_cast<float>(2 * (random() % 512) + 1) * 0x1p-12f;
      b = a;
    }
    float chain = start;
    while (a.size() < length) {
      const bool has_exponent = std::isfinite(chain) && chain != 0;
      const int unit = has_exponent ? std::max(std::ilogb(chain) - 23, -149) : -149;
      const auto [x, y] = almost_power(random, unit - 1 + (random() % 8 == 0));
      a.push_back(random() % 2 == 0 ? x : -x);
      b.push_back(y);
      chain = std::fma(a.back(), b.back(), chain);
    }
  }
};

}  // namespace

TEST_CASE("gemm: float chains through numbers halfway between floats, among all floats, on every path") {
  std::mt19937 random(6);
  const std::size_t m = 5, k = 300, n = 7;
  const auto any_float = [&] { return std::bit_cast<float>(static_cast<std::uint32_t>(random())); };
  const auto short_float = [&] {
    return std::bit_cast<float>(static_cast<std::uint32_t>(random()) & 0xfffff000);
  };
  // Their products are floats, and sums of these meet the smallest ones and infinity.
  const auto short_in_range = [&] {
    const float significand = 1 + static_cast<float>(random() % 0x800) * 0x1p-11f;
    return std::ldexp(random() % 2 == 0 ? significand : -significand, static_cast<int>(random() % 125) - 62);
  };
  const auto fixed = [&] {
    return static_cast<float>(static_cast<int>(random() % 65536) - 32768) * 0x1p-14f;
  };
  const auto tiny = [&] { return std::ldexp(1 + static_cast<float>(random() % 0x800000) * 0x1p-23f, -74); };
  std::normal_distribution<float> distribution;
  const auto normal = [&] { return distribution(random); };
  const auto from = [](std::size_t size, auto next) {
    std::vector<float> values(size);
    for (float& x : values) x = next();
    return values;
  };
  for (int kind = 0; kind < 400; ++kind) {
    CAPTURE(kind);
    std::vector<float> a = from(m * k, normal), b = from(k * n, normal), start(m * n, 0.0f);
    switch (kind % 8) {
      case 0:
        a = from(m * k, fixed), b = from(k * n, fixed);
        break;
      case 1:
        a = from(m * k, tiny), b = from(k * n, tiny);
        break;
      case 2:
        a = from(m * k, short_float), b = from(k * n, short_float);
        break;
      case 4:
        a = from(m * k, short_in_range), b = from(k * n, short_in_range);
        start = from(m * n, any_float);
        break;
      case 3:
        for (std::size_t i = 0; i < 3; ++i)
          a[random() % a.size()] = any_float(), b[random() % b.size()] = any_float();
        start = from(m * n, any_float);
        break;
      default: {
        constexpr float starts[]{1, 0x1.fffffep-126f, 0x1.000002p-130f, std::numeric_limits<float>::max(),
                                 HalfwayChain::small_start};
        const float first = starts[random() % std::size(starts)] * (random() % 2 == 0 ? 1.0f : -1.0f);
        start.assign(m * n, first);
        const HalfwayChain chain(random, first, k);
        for (std::size_t l = 0; l < k; ++l) {
          for (std::size_t i = 0; i < m; ++i) a[i * k + l] = chain.a[l];
          for (std::size_t j = 0; j < n; ++j) b[l * n + j] = chain.b[l];
        }
      }
    }
    std::vector<float> expected = start;
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t l = 0; l < k; ++l)
          expected[i * n + j] = std::fma(a[i * k + l], b[l * n + j], expected[i * n + j]);
      }
    }
    for (const fp16::VectorPath path : fp16::available_vector_paths()) {
      CAPTURE(fp16::name_of(path));
      std::vector<float> c = start;
      fp16::gemm({a.data(), fp16::binary32, m, k, k, 1}, {b.data(), fp16::binary32, k, n, n, 1}, c.data(), n,
                 Accumulation::fp32_fma_chain, {.start = ChainStart::from_output, .path = path});
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < c.size(); ++i) wrong += !same(c[i], expected[i]);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("gemm: threads change no bit") {
  std::mt19937 random(6);
  const std::size_t m = 77, k = 83, n = 41;
  const Matrix a(m, k, normal_halves(random, true)), b(k, n, normal_halves(random, true));
  const auto check = [&](const auto& accumulation, bool transposed) {
    std::vector<float> start(m * n);
    for (float& x : start) x = half(static_cast<float>(random() % 1000));
    std::vector<float> one = start, three = start, many = start;
    for (auto [c, threads] : {std::pair{&one, 1}, {&three, 3}, {&many, 100}}) {
      fp16::gemm(a.operand(transposed), b.operand(transposed), c->data(), n, accumulation,
                 {.start = ChainStart::from_output, .threads = threads});
    }
    CHECK(bits_of(one) == bits_of(three));
    CHECK(bits_of(one) == bits_of(many));
  };
  for (const bool transposed : {false, true}) {
    for (const Accumulation accumulation : float_chains) check(accumulation, transposed);
    check(TensorCoreAccumulation{fp16::hopper, fp16::binary32}, transposed);
    check(TensorCoreAccumulation{fp16::volta, fp16::binary16}, transposed);
  }
  std::vector<double> one(m * n), three(m * n);
  fp16::gemm(a.operand(false), b.operand(false), one.data(), n);
  fp16::gemm(a.operand(false), b.operand(false), three.data(), n, {.threads = 3});
  for (std::size_t i = 0; i < one.size(); ++i)
    REQUIRE(std::bit_cast<std::uint64_t>(one[i]) == std::bit_cast<std::uint64_t>(three[i]));
}

TEST_CASE("gemm: the accumulations differ from one another in most outputs at k = 256") {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const std::size_t n = 64, k = 256;
  const auto next = [&] { return half(normal(random)).bits(); };
  const Matrix a(n, k, next), b(k, n, next);
  std::vector<std::string> names;
  std::vector<std::vector<float>> results;
  const auto add = [&](const auto& accumulation) {
    names.emplace_back(name_of(accumulation));
    fp16::gemm(a.operand(false), b.operand(false), results.emplace_back(n * n).data(), n, accumulation);
  };
  for (const Accumulation accumulation : float_chains) add(accumulation);
  for (const fp16::TensorCore& core : {fp16::volta, fp16::ampere, fp16::hopper}) {
    add(TensorCoreAccumulation{core, fp16::binary32});
    add(TensorCoreAccumulation{core, fp16::binary16});
  }
  for (std::size_t x = 0; x < results.size(); ++x) {
    for (std::size_t y = 0; y < x; ++y) {
      std::size_t different = 0;
      for (std::size_t i = 0; i < n * n; ++i) different += results[x][i] != results[y][i];
      INFO(names[x], " and ", names[y], ": ", different, " of ", n * n);
      CHECK(different > n * n / 2);
    }
  }
}

TEST_CASE("gemm: what cannot be multiplied is refused") {
  const float x[4] = {};
  float c[4];
  double d[4];
  const fp16::MatrixOperand two_by_two{x, fp16::binary32, 2, 2, 2, 1},
      one_by_three{x, fp16::binary32, 1, 3, 3, 1};
  CHECK_THROWS_AS(fp16::gemm(two_by_two, one_by_three, c, 2, Accumulation::fp32_fma_chain),
                  std::invalid_argument);
  CHECK_THROWS_WITH_AS(fp16::gemm(two_by_two, two_by_two, c, 1, Accumulation::fp32_fma_chain),
                       "gemm: row_stride: 1 is not allowed; at least the 2 columns of C",
                       std::invalid_argument);
  CHECK_THROWS_AS(fp16::gemm(two_by_two, two_by_two, c, 2, Accumulation::fp64_fma_chain),
                  std::invalid_argument);
  const fp16::MatrixOperand doubles{d, fp16::binary64, 2, 2, 2, 1};
  CHECK_THROWS_AS(fp16::gemm(doubles, two_by_two, c, 2, Accumulation::fp32_fma_chain), std::invalid_argument);

  const TensorCoreAccumulation hopper{fp16::hopper, fp16::binary32};
  CHECK_THROWS_AS(fp16::gemm(two_by_two, one_by_three, c, 2, hopper), std::invalid_argument);
  CHECK_THROWS_AS(fp16::gemm(two_by_two, two_by_two, c, 2, hopper, {.threads = 0}), std::invalid_argument);
  fp16::MatrixOperand bytes = two_by_two;
  bytes.storage = fp16::e4m3;
  CHECK_THROWS_WITH_AS(fp16::gemm(bytes, two_by_two, c, 2, hopper),
                       "gemm: storage: e4m3 is not allowed; binary16, bfloat16, binary32 or binary64",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      fp16::gemm(two_by_two, two_by_two, c, 2, TensorCoreAccumulation{fp16::hopper, fp16::bfloat16}),
      "gemm: accumulator: bfloat16 is not one of a tensor core; binary32 or binary16", std::invalid_argument);
  TensorCoreAccumulation too_wide = hopper;
  too_wide.core.fraction_bits = 80;
  CHECK_THROWS_AS(fp16::gemm(two_by_two, two_by_two, c, 2, too_wide), std::invalid_argument);
  for (const int products : {0, 257}) {
    TensorCoreAccumulation wrong = hopper;
    wrong.core.products_per_step = products;
    CHECK_THROWS_AS(fp16::gemm(two_by_two, two_by_two, c, 2, wrong), std::invalid_argument);
  }
}
