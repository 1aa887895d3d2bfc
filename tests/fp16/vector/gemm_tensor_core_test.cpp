/// Products as tensor cores form them, held to the bit to mma.h.

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "fp16/gemm.h"
#include "fp16/half.h"
#include "fp16/mma.h"
#include "tests/fp16/vector/gemm_matrix.h"
#include "tests/oracle/hard_cases.h"

namespace {

using fp16::ChainStart;
using fp16::half;
using fp16::TensorCoreAccumulation;
using test::bits_of;
using test::Matrix;
using test::Sizes;

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
