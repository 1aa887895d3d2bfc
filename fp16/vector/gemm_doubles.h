#pragma once
/// Chains of fused multiply-adds of floats in binary64, for processors that have none. Internal to gemm.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "fp16/vector/environment.h"
#include "fp16/vector/gemm_kernels.h"

namespace fp16::detail {
namespace {

/// A tile of chains of floats. A product of two floats is exact in binary64; its sum with a float is rounded to
/// binary64 and then to binary32. That is one rounding of the exact sum
/// - if the product has no more digits than a float, because 53 >= 2 * 24 + 2 (Figueroa 1995);
/// - unless the sum was inexact in binary64 and became a number halfway between two floats.
/// What is halfway between two subnormal floats, and was not, raises underflow in the processor; where nothing is raised,
/// sums below the normal floats are in doubt, unless all products are multiples of the smallest float, as are such sums then.
///
/// Products with no more digits than a float are exact in binary32, too, unless they leave its range: their chains are of
/// floats.
template <std::size_t rows, std::size_t columns>
class DoubleTile {
 public:
  explicit DoubleTile(const Tile<float>& tile) : tile_(tile) {}

  void advance() {
    const Magnitudes a(tile_.a.data, tile_.depth * tile_rows), b(tile_.b.data, tile_.depth * tile_columns);
    const bool are_short = a.are_short() && b.are_short();
    if constexpr (columns == 4) {
      if (are_short && a.have_exact_products() && b.have_exact_products()) return advance_floats();
    }
    load();
    if (are_short) {
      advance_steps<Check::none>(0, tile_.depth);
    } else {
      clear_raised_flags();
      const Chains before = chains_;
      has_tiny_products_ = !has_raised_flags && !(a.have_wide_products() && b.have_wide_products());
      advance_checked();
      if (raised_flags().underflow) {
        chains_ = before;
        advance_by_fma(0, tile_.depth);
      }
    }
    store();
  }

 private:
  using Doubles = double __attribute__((vector_size(16)));
  using Floats = float __attribute__((vector_size(8)));
  using Longs = std::int64_t __attribute__((vector_size(16)));
  using Ints = std::int32_t __attribute__((vector_size(16)));
  static constexpr std::size_t lanes = 2, vectors = columns / lanes, tile_rows = 4, tile_columns = 4;
  struct Chains {
    Doubles of[rows][vectors];
  };

  /// What doubts a sum: nothing; that it is halfway; that it is halfway or below the normal floats; that it was inexact
  /// besides.
  enum class Check { none, halfway, halfway_or_tiny, rounded_halfway };

  /// What is known of some operands.
  class Magnitudes {
   public:
    Magnitudes(const float* values, std::size_t count) {
      std::uint32_t united = 0, less_one = ~std::uint32_t{0}, greatest = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t bits = std::bit_cast<std::uint32_t>(values[i]), magnitude = bits & 0x7fffffff;
        united |= bits;
        less_one = less_one < magnitude - 1 ? less_one : magnitude - 1;  // zero becomes the greatest
        greatest = greatest > magnitude ? greatest : magnitude;
      }
      united_ = united;
      least_ = less_one == ~std::uint32_t{0} ? less_one : less_one + 1;
      greatest_ = greatest;
    }

    /// Whether all of them have at most 12 digits, as all numbers of formats of 16 bits have.
    bool are_short() const { return (united_ & 0xfff) == 0; }
    /// Whether products of two such, of 12 digits each, are floats.
    bool have_exact_products() const { return least_ >= bits_of(0x1p-62f) && greatest_ < bits_of(0x1p63f); }
    /// Whether products of two such are multiples of the smallest float.
    bool have_wide_products() const { return least_ >= bits_of(0x1p-51f); }

   private:
    static constexpr std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
    std::uint32_t united_, least_, greatest_;  ///< least of those that are not zero
  };

  void load() {
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t v = 0; v < vectors; ++v) {
        const float* from = tile_.c + i * tile_.row_stride + v * lanes;
        chains_.of[i][v] = tile_.from_zero ? Doubles{} : Doubles{from[0], from[1]};
      }
    }
  }

  void store_at(std::size_t i, std::size_t j, float x) const {
    tile_.c[i * tile_.row_stride + j] = x != x ? std::numeric_limits<float>::quiet_NaN() : x;
  }

  void store() const {
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j)
        store_at(i, j, static_cast<float>(chains_.of[i][j / lanes][j % lanes]));
    }
  }

  void advance_floats() const {
    using Row = float __attribute__((vector_size(16)));
    Row chains[rows];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < rows; ++i) {
      const float* from = tile_.c + i * tile_.row_stride;
      chains[i] = tile_.from_zero ? Row{} : Row{from[0], from[1], from[2], from[3]};
    }
    for (std::size_t k = 0; k < tile_.depth; ++k) {
      const float* a = tile_.a.data + k * tile_rows;
      const float* b = tile_.b.data + k * tile_columns;
      const Row row{b[0], b[1], b[2], b[3]};
#pragma GCC unroll 4
      for (std::size_t i = 0; i < rows; ++i) chains[i] = Row{a[i], a[i], a[i], a[i]} * row + chains[i];
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < 4; ++j) store_at(i, j, chains[i][j]);
    }
  }

  /// Where some exact sums are halfway, more will be.
  void advance_checked() {
    constexpr std::size_t steps = 16;
    bool some_are_halfway = false;
    for (std::size_t begin = 0; begin < tile_.depth; begin += steps) {
      const std::size_t end = begin + steps < tile_.depth ? begin + steps : tile_.depth;
      const Chains before = chains_;
      if (!some_are_halfway) {
        some_are_halfway = has_tiny_products_ ? advance_steps<Check::halfway_or_tiny>(begin, end)
                                              : advance_steps<Check::halfway>(begin, end);
        if (!some_are_halfway) continue;
        chains_ = before;
      }
      if (!advance_steps<Check::rounded_halfway>(begin, end)) continue;
      chains_ = before;
      advance_by_fma(begin, end);
    }
  }

  /// To binary32. Clang takes the lanes one by one in WebAssembly. Clang 16 does not where it sees them beside zeros, at
  /// which Clang 19 crashes.
  static Doubles rounded(Doubles sum) {
#if defined(__wasm_simd128__) && __clang_major__ < 17
    auto floats = __builtin_shufflevector(__builtin_convertvector(sum, Floats), Floats{}, 0, 1, 2, 3);
    asm("" : "+r"(floats));
    return __builtin_convertvector(__builtin_shufflevector(floats, floats, 0, 1), Doubles);
#else
    return __builtin_convertvector(__builtin_convertvector(sum, Floats), Doubles);
#endif
  }

  static Longs is_tiny(Doubles sum) {
    constexpr double smallest = std::numeric_limits<float>::min();
    return (sum != Doubles{}) & (sum < Doubles{smallest, smallest}) & (sum > Doubles{-smallest, -smallest});
  }

  /// Whether one of the sums is in doubt.
  template <Check check>
  [[gnu::noinline]] bool advance_steps(std::size_t begin, std::size_t end) {
    Chains chains = chains_;
    Ints doubts{};
    for (std::size_t k = begin; k < end; ++k) {
      const float* a = tile_.a.data + k * tile_rows;
      const float* b = tile_.b.data + k * tile_columns;
      Doubles row[vectors];
#pragma GCC unroll 4
      for (std::size_t v = 0; v < vectors; ++v) row[v] = Doubles{b[v * lanes], b[v * lanes + 1]};
#pragma GCC unroll 4
      for (std::size_t i = 0; i < rows; ++i) {
        const double element = a[i];
#pragma GCC unroll 4
        for (std::size_t v = 0; v < vectors; ++v) {
          Doubles& chain = chains.of[i][v];
          const Doubles product = Doubles{element, element} * row[v];
          const Doubles sum = product + chain;
          if constexpr (check != Check::none) {
            // Compared as halves of 64 bits; the upper ones, zeros, are equal nowhere.
            constexpr std::int64_t dropped_bits = 0x1fffffff, halfway = 0x1'10000000;
            const auto dropped = std::bit_cast<Longs>(sum) & Longs{dropped_bits, dropped_bits};
            Ints doubt = std::bit_cast<Ints>(dropped) == std::bit_cast<Ints>(Longs{halfway, halfway});
            if constexpr (check == Check::halfway_or_tiny ||
                          (check == Check::rounded_halfway && !has_raised_flags))
              doubt |= std::bit_cast<Ints>(is_tiny(sum));
            if constexpr (check == Check::rounded_halfway)
              doubt &= std::bit_cast<Ints>(((sum - chain) != product) | ((sum - product) != chain));
            doubts |= doubt;
          }
          chain = rounded(sum);
        }
      }
    }
    chains_ = chains;
    const auto any = std::bit_cast<Longs>(doubts);
    return (any[0] | any[1]) != 0;
  }

  void advance_by_fma(std::size_t begin, std::size_t end) {
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        Doubles& pair = chains_.of[i][j / lanes];
        auto x = static_cast<float>(pair[j % lanes]);
        for (std::size_t k = begin; k < end; ++k)
          x = std::fma(tile_.a.data[k * tile_rows + i], tile_.b.data[k * tile_columns + j], x);
        pair[j % lanes] = x;
      }
    }
  }

  const Tile<float>& tile_;
  Chains chains_;
  bool has_tiny_products_ = false;  ///< whose sums below the normal floats nobody would notice
};

template <std::size_t rows, std::size_t columns>
void advance_double_tile(const Tile<float>& tile) {
  DoubleTile<rows, columns>(tile).advance();
}

constexpr TileKernel<float>::Advance double_tile_variants[] = {
    advance_double_tile<1, 2>, advance_double_tile<2, 2>, advance_double_tile<3, 2>,
    advance_double_tile<4, 2>, advance_double_tile<1, 4>, advance_double_tile<2, 4>,
    advance_double_tile<3, 4>, advance_double_tile<4, 4>};

constexpr TileKernel<float> double_tile_kernel() {
  return {.rows = 4, .columns = 4, .lanes = 2, .advance = double_tile_variants};
}

}  // namespace
}  // namespace fp16::detail
