#include "fp16/gemm.h"

#include <doctest/doctest.h>

#include <Eigen/Dense>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fp16/half.h"
#include "fp16/mma.h"
#include "tests/oracle/hard_cases.h"

namespace {

using fp16::Accumulation;
using fp16::ChainStart;
using fp16::half;
using fp16::TensorCoreAccumulation;

constexpr Accumulation float_chains[] = {Accumulation::fp32_fma_chain, Accumulation::fp16_fma_chain,
                                         Accumulation::fp16_mul_add_chain};

struct Sizes {
  std::size_t m, k, n;
};

// Below, at and beyond every tile and block edge: 1, tile rows 4/6/8/12, tile columns 4..32, blocks of 120 to
// 128, 256 and 1024.
constexpr Sizes shapes[] = {{1, 1, 1},     {1, 5, 33},     {7, 3, 1},     {5, 17, 31},  {12, 32, 32},
                            {13, 256, 40}, {129, 257, 33}, {25, 513, 65}, {3, 40, 1030}};

/// Stored both ways, so that one product can be asked for in every combination of layouts.
struct Matrix {
  std::size_t rows, columns;
  std::vector<std::uint16_t> row_major, column_major;

  template <class Next>
  Matrix(std::size_t r, std::size_t c, Next next)
      : rows(r), columns(c), row_major(r * c), column_major(r * c) {
    for (std::size_t i = 0; i < r; ++i) {
      for (std::size_t j = 0; j < c; ++j) row_major[i * c + j] = column_major[j * r + i] = next();
    }
  }
  half at(std::size_t i, std::size_t j) const { return half::from_bits(row_major[i * columns + j]); }
  std::span<const std::uint16_t> row(std::size_t i) const {
    return std::span(row_major).subspan(i * columns, columns);
  }
  std::span<const std::uint16_t> column(std::size_t j) const {
    return std::span(column_major).subspan(j * rows, rows);
  }
  fp16::MatrixOperand operand(bool transposed_storage) const {
    return transposed_storage
               ? fp16::MatrixOperand{column_major.data(), fp16::binary16, rows, columns, 1, rows}
               : fp16::MatrixOperand{row_major.data(), fp16::binary16, rows, columns, columns, 1};
  }
};

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
          for (int layout = 0; layout < 4; ++layout) {
            std::vector<float> c(m * n, -1);
            fp16::gemm(a.operand(layout & 1), b.operand(layout & 2), c.data(), n, accumulation,
                       {.path = path});
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
          fp16::MatrixOperand left = a.operand(false), right = b.operand(false);
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

/// Data that lead a tensor core where its rounding is delicate.
struct HardData {
  const char* name;
  /// Operands; `index` counts along k. Those of A are drawn with `second` false, those of B with true.
  std::uint16_t (*operand)(oracle::HardHalves& hard, oracle::RandomBits& random, std::size_t index,
                           bool second);
  /// Accumulators to go on from.
  std::uint32_t (*addend)(oracle::HardFloats& hard, oracle::RandomBits& random);
};

std::uint16_t finite(oracle::HardHalves& hard) {
  std::uint16_t code = hard.next();
  while (!fp16::is_finite<fp16::binary16>(code)) code = hard.next();
  return code;
}

/// A float of either sign with its exponent field within first .. first + count - 1.
std::uint32_t float_between(oracle::RandomBits& random, std::uint32_t first, int count) {
  const auto bits = static_cast<std::uint32_t>(random.next());
  return (bits & 0x807fffff) | (first + static_cast<std::uint32_t>(random.below(count))) << 23;
}

constexpr HardData hard_data[] = {
    {"any finite numbers", [](auto& hard, auto&, std::size_t, bool) { return finite(hard); },
     [](auto& hard, auto&) { return hard.next(); }},
    {"moderate numbers, one in 100 any code",
     [](auto& hard, auto& random, std::size_t, bool) {
       return random.below(100) == 0 ? hard.next() : hard.near(0x3c00);
     },
     [](auto& hard, auto& random) {
       return random.below(4) == 0 ? hard.next() : float_between(random, 100, 50);
     }},
    {"subnormal numbers and zeros, c far below them or zero",
     [](auto&, auto& random, std::size_t, bool) {
       const auto bits = static_cast<std::uint16_t>(random.next());
       return static_cast<std::uint16_t>((bits & 0x8000) | (bits & 0x3ff) >> random.below(12));
     },
     [](auto& hard, auto& random) {
       return random.below(3) == 0 ? hard.next() & 0x807fffff : float_between(random, 0, 90);
     }},
    {"small products, the smallest normal numbers among them",
     [](auto&, auto& random, std::size_t, bool) {
       return static_cast<std::uint16_t>(random.next() & (random.below(4) == 0 ? 0x83ff : 0x8fff));
     },
     [](auto&, auto& random) { return random.below(2) == 0 ? 0u : float_between(random, 85, 30); }},
    {"the largest significands, of one sign",
     [](auto&, auto& random, std::size_t, bool second) {
       const std::uint16_t sign = second && random.below(64) == 0 ? 0x8000 : 0;
       return static_cast<std::uint16_t>((0x3fff - random.below(2)) | sign);
     },
     [](auto&, auto& random) { return float_between(random, 126, 4) | 0x7fff00; }},
    {"the largest numbers, of both signs",
     [](auto&, auto& random, std::size_t, bool second) {
       const std::uint16_t sign = second && random.below(2) == 0 ? 0x8000 : 0;
       return static_cast<std::uint16_t>((0x7bff - random.below(2)) | sign);
     },
     [](auto& hard, auto& random) {
       return random.below(2) == 0 ? hard.next() : float_between(random, 150, 20);
     }},
    {"numbers about 64, whose sums pass the largest half",
     [](auto& hard, auto& random, std::size_t, bool) {
       return static_cast<std::uint16_t>(0x5000 + random.below(0x900) + (hard.uniform() & 0x8000));
     },
     [](auto&, auto& random) { return float_between(random, 127, 16); }},
    {"pairs that cancel, or all but",
     [](auto&, auto& random, std::size_t index, bool second) {
       if (!second) return static_cast<std::uint16_t>(0x3c00 + (index / 2 * 977 & 0xfff));
       const std::uint16_t sign = index % 2 == 0 ? 0 : 0x8000;
       return static_cast<std::uint16_t>((0x3c00 + (index / 2 * 331 & 0x1fff) + (random.below(8) == 0)) |
                                         sign);
     },
     [](auto&, auto& random) { return random.below(2) == 0 ? 0x80000000u : float_between(random, 90, 30); }},
    {"zeros, one in 16 anything else, and any c",
     [](auto& hard, auto& random, std::size_t, bool) {
       return static_cast<std::uint16_t>(random.below(16) == 0 ? finite(hard) : random.next() & 0x8000);
     },
     [](auto& hard, auto& random) { return random.below(3) == 0 ? 0x80000000u : hard.uniform(); }},
    {"infinities and NaNs that meet",
     [](auto& hard, auto& random, std::size_t index, bool) {
       if (index % 16 != 5 || random.below(2) == 0) return hard.near(0x3c00);
       const std::uint64_t payload = random.below(3) == 0 ? random.next() & 0x3ff : 0;
       return static_cast<std::uint16_t>(0x7c00 | payload | (random.next() & 0x8000));
     },
     [](auto&, auto& random) { return float_between(random, 120, 20); }},
};

/// `bits` as an accumulator of the format, stored as a float.
float as_accumulator(std::uint32_t bits, const fp16::Format& accumulator) {
  const float value = std::bit_cast<float>(bits);
  return accumulator == fp16::binary32 ? value : float(half(value));
}

/// The bits that C must hold for output i, j.
std::uint32_t by_definition(const TensorCoreAccumulation& accumulation, const Matrix& a, const Matrix& b,
                            std::size_t i, std::size_t j, float c) {
  if (accumulation.accumulator == fp16::binary32) {
    return fp16::mma_dot<fp16::binary32>(accumulation.core, a.row(i), b.column(j),
                                         std::bit_cast<std::uint32_t>(c));
  }
  const std::uint16_t code =
      fp16::mma_dot<fp16::binary16>(accumulation.core, a.row(i), b.column(j), half(c).bits());
  return std::bit_cast<std::uint32_t>(fp16::half_bits_to_float(code));
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

/// Every path and two layouts against mma.h, from zero and from `c`.
void check_tensor_core(const TensorCoreAccumulation& accumulation, const Matrix& a, const Matrix& b,
                       const std::vector<float>& c) {
  const std::size_t m = a.rows, n = b.columns;
  for (const ChainStart start : {ChainStart::zero, ChainStart::from_output}) {
    std::vector<std::uint32_t> expected(m * n);
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        const float from = start == ChainStart::zero ? 0.0f : c[i * n + j];
        expected[i * n + j] = by_definition(accumulation, a, b, i, j, from);
      }
    }
    for (const fp16::VectorPath path : fp16::available_vector_paths()) {
      const int layouts = path == fp16::VectorPath::portable ? 1 : 2;
      for (int layout = 0; layout < layouts; ++layout) {
        std::vector<float> got = c;
        fp16::gemm(a.operand(layout == 1), b.operand(layout == 0), got.data(), n, accumulation,
                   {.start = start, .path = path});
        INFO(name_of(accumulation), " ", name_of(path), " layout ", layout, " start ",
             static_cast<int>(start));
        REQUIRE(bits_of(got) == expected);
      }
    }
  }
}

/// Products of `data` in all shapes given.
void check_tensor_core(const TensorCoreAccumulation& accumulation, const HardData& data,
                       std::span<const Sizes> sizes, std::uint64_t seed) {
  oracle::HardHalves hard(seed);
  oracle::HardFloats hard_floats(seed + 1);
  oracle::RandomBits random(seed + 2);
  for (const auto [m, k, n] : sizes) {
    INFO(data.name, ": ", m, "x", k, "x", n);
    std::size_t a_index = 0, b_index = 0;
    const Matrix a(m, k, [&] { return data.operand(hard, random, a_index++ % k, false); });
    const Matrix b(k, n, [&] { return data.operand(hard, random, b_index++ / n, true); });
    std::vector<float> c(m * n);
    for (float& x : c) x = as_accumulator(data.addend(hard_floats, random), accumulation.accumulator);
    check_tensor_core(accumulation, a, b, c);
  }
}

// Around tiles of 4 x 16, 16 x 32 and 16 x 64, steps of 4, 8 and 16, and blocks of 256 products.
constexpr Sizes tensor_core_shapes[] = {{1, 1, 1}, {1, 3, 66}, {17, 16, 31}, {16, 33, 64}, {4, 0, 5}};
constexpr Sizes long_shapes[] = {{3, 256, 33}, {9, 263, 17}, {2, 530, 5}};

}  // namespace

TEST_CASE("gemm: tensor cores are mma.h to the bit, on every path, from every start, for hard data") {
  for (const fp16::TensorCore& core : {fp16::volta, fp16::ampere, fp16::hopper}) {
    for (const fp16::Format& accumulator : {fp16::binary32, fp16::binary16}) {
      for (const HardData& data : hard_data) {
        for (std::uint64_t seed = 0; seed < 80; seed += 10)
          check_tensor_core({core, accumulator}, data, tensor_core_shapes, seed);
        check_tensor_core({core, accumulator}, data, long_shapes, 80);
      }
    }
  }
}

TEST_CASE("gemm: every row of tensor_cores, and rows of one's own that fill no lanes or no block") {
  std::vector<fp16::TensorCore> cores(fp16::tensor_cores.begin(), fp16::tensor_cores.end());
  cores.push_back({"three", 3, 24, fp16::no_alignment_floor, -20, fp16::Evidence::literature});
  cores.push_back({"thirty", 30, 24, -130, -16, fp16::Evidence::literature});
  cores.push_back({"one", 1, 29, -133, -30, fp16::Evidence::literature});
  cores.push_back({"precise", 16, 26, -133, -21, fp16::Evidence::literature});
  cores.push_back({"coarse", 8, 16, -133, -21, fp16::Evidence::literature});
  cores.push_back({"high floors", 8, 24, -30, -4, fp16::Evidence::literature});
  cores.push_back({"highest floor", 7, 24, -133, 200, fp16::Evidence::literature});
  cores.push_back({"lowest floors", 16, 25, -200, -250, fp16::Evidence::literature});
  for (const fp16::TensorCore& core : cores) {
    for (const fp16::Format& accumulator : {fp16::binary32, fp16::binary16}) {
      for (const HardData& data : hard_data)
        check_tensor_core({core, accumulator}, data, std::array{Sizes{5, 62, 20}, Sizes{2, 520, 7}}, 4);
    }
  }
}

TEST_CASE("gemm: sixteen largest products and a large c leave 32 bits") {
  const std::vector<std::uint16_t> largest(16, 0x3fff);
  std::vector<std::uint16_t> negative(16, 0xbfff);
  const fp16::MatrixOperand a{largest.data(), fp16::binary16, 1, 16, 16},
      b{largest.data(), fp16::binary16, 16, 1, 1}, minus_b{negative.data(), fp16::binary16, 16, 1, 1};
  for (const fp16::VectorPath path : fp16::available_vector_paths()) {
    // (2 - 2^-10)^2 = 4 - 2^-8 + 2^-20, sixteen times 64 - 2^-4 + 2^-16, and c = 2 - 2^-23, of which 25 bits
    // below the point are kept: 66 - 2^-4 + 2^-16 - 2^-23, toward zero to multiples of 2^-17.
    const float sum = 66 - 0x1p-4f + 0x1p-16f - 0x1p-17f;
    float c = 2 - 0x1p-23f;
    fp16::gemm(a, b, &c, 1, TensorCoreAccumulation{fp16::hopper, fp16::binary32},
               {.start = ChainStart::from_output, .path = path});
    CHECK(c == sum);
    c = -2 + 0x1p-23f;
    fp16::gemm(a, minus_b, &c, 1, TensorCoreAccumulation{fp16::hopper, fp16::binary32},
               {.start = ChainStart::from_output, .path = path});
    CHECK(c == -sum);
    c = 2 - 0x1p-10f;  // 66 - 2^-4 + ... is nearest to 65.9375 among multiples of 2^-4
    fp16::gemm(a, b, &c, 1, TensorCoreAccumulation{fp16::hopper, fp16::binary16},
               {.start = ChainStart::from_output, .path = path});
    CHECK(c == 65.9375f);
  }
}

TEST_CASE("gemm: NaNs of tensor cores are the model's") {
  const std::uint16_t a[2] = {0x7c00, 0x3c00}, b[2] = {0x0000, 0x3c00};
  for (const fp16::VectorPath path : fp16::available_vector_paths()) {
    for (const fp16::Format& accumulator : {fp16::binary32, fp16::binary16}) {
      float c = 0;
      fp16::gemm({a, fp16::binary16, 1, 2, 2}, {b, fp16::binary16, 2, 1, 1}, &c, 1,
                 TensorCoreAccumulation{fp16::hopper, accumulator}, {.path = path});
      CHECK(std::bit_cast<std::uint32_t>(c) == (accumulator == fp16::binary32 ? 0x7fffffff : 0x7fffe000));
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
