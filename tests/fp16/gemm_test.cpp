#include "fp16/gemm.h"

#include <doctest/doctest.h>

#include <Eigen/Dense>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "fp16/half.h"

namespace {

using fp16::Accumulation;
using fp16::half;

struct Sizes {
  std::size_t m, k, n;
};

// Below, at and beyond every tile and block edge: 1, tile rows 4/6/8/12, tile columns 4..32, blocks of 120,
// 256 and 1024.
constexpr Sizes shapes[] = {{1, 1, 1},     {1, 5, 33},     {7, 3, 1},     {5, 17, 31},  {12, 32, 32},
                            {13, 256, 40}, {121, 257, 33}, {25, 513, 65}, {3, 40, 1030}};

/// Stored both ways, so that one product can be asked for in every combination of layouts.
struct Matrix {
  std::size_t rows, columns;
  std::vector<std::uint16_t> row_major, column_major;

  Matrix(std::size_t r, std::size_t c, std::mt19937& random, bool specials)
      : rows(r), columns(c), row_major(r * c), column_major(r * c) {
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < r; ++i) {
      for (std::size_t j = 0; j < c; ++j) {
        half value(std::ldexp(normal(random), -static_cast<int>(random() % 12)));
        if (specials && random() % 64 == 0) value = half::from_bits(static_cast<std::uint16_t>(random()));
        row_major[i * c + j] = column_major[j * r + i] = value.bits();
      }
    }
  }
  half at(std::size_t i, std::size_t j) const { return half::from_bits(row_major[i * columns + j]); }
  fp16::MatrixOperand operand(bool transposed_storage) const {
    return transposed_storage
               ? fp16::MatrixOperand{column_major.data(), fp16::binary16, rows, columns, 1, rows}
               : fp16::MatrixOperand{row_major.data(), fp16::binary16, rows, columns, columns, 1};
  }
};

float naive_chain(const Matrix& a, const Matrix& b, std::size_t i, std::size_t j, Accumulation accumulation) {
  if (accumulation == Accumulation::fp16_fma_chain) {
    half chain(0.0f);
    for (std::size_t k = 0; k < a.columns; ++k) chain = fp16::fma(a.at(i, k), b.at(k, j), chain);
    return chain;
  }
  float chain = 0;
  for (std::size_t k = 0; k < a.columns; ++k) chain = std::fma(float(a.at(i, k)), float(b.at(k, j)), chain);
  return chain;
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
      const Matrix a(m, k, random, specials), b(k, n, random, specials);
      for (const Accumulation accumulation : {Accumulation::fp32_fma_chain, Accumulation::fp16_fma_chain}) {
        std::vector<float> expected(m * n);
        for (std::size_t i = 0; i < m; ++i) {
          for (std::size_t j = 0; j < n; ++j) expected[i * n + j] = naive_chain(a, b, i, j, accumulation);
        }
        for (const fp16::VectorPath path : fp16::available_vector_paths()) {
          for (int layout = 0; layout < 4; ++layout) {
            std::vector<float> c(m * n, -1);
            fp16::gemm(a.operand(layout & 1), b.operand(layout & 2), c.data(), n, accumulation,
                       fp16::ChainStart::zero, path);
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

TEST_CASE("gemm: a chain goes on where it stopped, and rows of C may be longer than the product") {
  std::mt19937 random(2);
  const std::size_t m = 9, k = 300, n = 37, stride = 50, split = 111;
  const Matrix a(m, k, random, false), b(k, n, random, false);
  for (const Accumulation accumulation : {Accumulation::fp32_fma_chain, Accumulation::fp16_fma_chain}) {
    std::vector<float> whole(m * stride, 7), parts(m * stride, 7);
    fp16::gemm(a.operand(false), b.operand(false), whole.data(), stride, accumulation);
    fp16::MatrixOperand a1 = a.operand(false), a2 = a1, b1 = b.operand(false), b2 = b1;
    a1.columns = b1.rows = split;
    a2.columns = b2.rows = k - split;
    a2.data = a.row_major.data() + split;
    b2.data = b.row_major.data() + split * n;
    fp16::gemm(a1, b1, parts.data(), stride, accumulation);
    fp16::gemm(a2, b2, parts.data(), stride, accumulation, fp16::ChainStart::from_output);
    CHECK(whole == parts);
    CHECK(whole[n] == 7);  // beyond the row's end nothing is written
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
               n, Accumulation::fp32_fma_chain, fp16::ChainStart::zero, path);
    std::vector<double> c64(m * n);
    fp16::gemm({a.data(), fp16::binary64, m, k, k, 1}, {b32.data(), fp16::binary32, k, n, n, 1}, c64.data(),
               n, fp16::ChainStart::zero, path);
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
               fp16::ChainStart::zero, path);
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        double chain = 0;
        for (std::size_t l = 0; l < k; ++l) chain = std::fma(a[i * k + l], b[l * n + j], chain);
        REQUIRE(c[i * n + j] == chain);
      }
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
  CHECK_THROWS_AS(fp16::gemm(two_by_two, two_by_two, c, 2, Accumulation::fp64_fma_chain),
                  std::invalid_argument);
  const fp16::MatrixOperand doubles{d, fp16::binary64, 2, 2, 2, 1};
  CHECK_THROWS_AS(fp16::gemm(doubles, two_by_two, c, 2, Accumulation::fp32_fma_chain), std::invalid_argument);
}
