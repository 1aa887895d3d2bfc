#pragma once
/// The steps of mma.h on vectors whose lanes are outputs, written once for all instruction sets; `Lanes` is what
/// one offers.
///
/// The product of two halves is exact as a float, and so is its multiple by a power of two unless it
/// underflows, when it is far below one. Conversion to an integer then truncates toward zero, as the model
/// does, and the sum of a step's products fits into 32 bits. The exponents that decide on the power of two
/// are bytes: a vector holds those of four vectors of floats. Two things are left to rare branches:
/// infinities and NaNs, and sums that leave 32 bits when c is added.

#include <bit>
#include <cstddef>
#include <cstdint>

#include "fp16/vector/gemm_kernels.h"

namespace fp16::detail {
namespace {

constexpr int float_trailing_bits = binary32.trailing_bits();
constexpr int float_bias = binary32.bias();
constexpr std::int32_t float_exponent_mask = 0x7f800000;

/// The bits of 2^exponent as a float.
constexpr std::int32_t power_of_two_bits(int exponent) {
  return (exponent + float_bias) << float_trailing_bits;
}

constexpr int least_product_exponent = 2 * binary16.emin();
constexpr int largest_product_exponent = 2 * binary16.emax();
// Marks in the place of an exponent. Saturated sums with zero_mark stay below the range of products, sums
// with special_mark above it, even that of both.
constexpr std::int8_t zero_mark = -64, special_mark = 100;
static_assert(zero_mark + binary16.emax() < least_product_exponent);
static_assert(special_mark + zero_mark > largest_product_exponent);

/// What one call advances: for all columns the bytes of one vector; and how many rows at a time, so that half of
/// the registers are left for what a step computes.
template <class Lanes>
struct Outputs {
  static constexpr std::size_t rows = 16, columns = 4 * Lanes::width, rows_at_once = Lanes::registers / 4;
};

// Sums of 32 bits with at least 23 fraction bits allow no more.
constexpr std::size_t most_products_per_step = 64;

/// The exponents that mma.h aligns by: not below emin of binary16.
void find_exponents(const float* halves, std::size_t count, std::int8_t* exponents) {
  for (std::size_t i = 0; i < count; ++i) {
    const int biased =
        static_cast<int>(std::bit_cast<std::uint32_t>(halves[i]) << 1 >> (float_trailing_bits + 1));
    const int exponent = biased < binary16.emin() + float_bias ? binary16.emin() : biased - float_bias;
    const int marked = biased == 0 ? zero_mark : biased == 0xff ? special_mark : exponent;
    exponents[i] = static_cast<std::int8_t>(marked);
  }
}

/// Largest exponents among the products of a step, for rows_at_once x columns outputs.
template <class Lanes>
void find_tops(const std::int8_t* a, const std::int8_t* b, std::size_t count, std::int8_t* tops) {
  typename Lanes::Bytes top[Outputs<Lanes>::rows_at_once];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < Outputs<Lanes>::rows_at_once; ++i) top[i] = Lanes::set_bytes(-128);
  for (std::size_t k = 0; k < count; ++k) {
    const auto column = Lanes::load(b + k * Outputs<Lanes>::columns);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < Outputs<Lanes>::rows_at_once; ++i) {
      const auto row = Lanes::set_bytes(a[k * Outputs<Lanes>::rows + i]);
      top[i] = Lanes::max_bytes(top[i], Lanes::add_bytes_saturated(row, column));
    }
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < Outputs<Lanes>::rows_at_once; ++i)
    Lanes::store(tops + i * Outputs<Lanes>::columns, top[i]);
}

/// Where a term is infinite or NaN, the sum of the terms as floats is so too, in any order: finite products
/// are too small to make another infinity.
template <class Lanes, const Format& Accumulator>
typename Lanes::Vector special_sum(const TensorCoreOperands& step, typename Lanes::Vector sum) {
  for (std::size_t k = 0; k < step.depth; ++k)
    sum = sum + Lanes::broadcast(step.a[k * Outputs<Lanes>::rows]) *
                    Lanes::load(step.b + k * Outputs<Lanes>::columns);
  constexpr std::int32_t nan = Accumulator == binary32 ? 0x7fffffff : 0x7fffe000;
  return Lanes::select(Lanes::unordered(sum), Lanes::floats_of(Lanes::set(nan)), sum);
}

/// power_of_two_bits() of the exponent that c is aligned by; below all of products if c is zero.
template <class Lanes, const Format& Accumulator>
typename Lanes::Ints exponent_of_addend(typename Lanes::Vector c) {
  const auto exponent = Lanes::bits_of(c) & Lanes::set(float_exponent_mask);
  if constexpr (Accumulator == binary32) return exponent;
  return Lanes::keep(Lanes::greater(exponent, Lanes::set(0)),
                     Lanes::max(exponent, Lanes::set(power_of_two_bits(binary16.emin()))));
}

/// The products of a step for one vector of outputs.
template <class Lanes>
struct AlignedSum {
  typename Lanes::Ints sum;  ///< in units of 1 / scale
  typename Lanes::Vector scale;
  typename Lanes::Ints top;  ///< largest exponent of a product, as of power_of_two_bits()
};

/// Adds `products` to the vector of accumulators at c and rounds.
template <class Lanes, const Format& Accumulator>
void finish_step(const TensorCoreOperands& step, const AlignedSum<Lanes>& products, float* c) {
  using Vector = typename Lanes::Vector;
  using Ints = typename Lanes::Ints;
  const Vector addend = Lanes::load(c);
  const Ints units = Lanes::truncate(addend * products.scale);
  const Ints total = Lanes::add(products.sum, units);
  const Vector unit = Lanes::floats_of(
      Lanes::subtract(Lanes::set(2 * float_bias << float_trailing_bits), Lanes::bits_of(products.scale)));
  Vector result;
  if constexpr (Accumulator == binary32) {
    // Without products c stands, but for the sign of a zero: it may be too small for a scale.
    const auto no_products =
        Lanes::greater(Lanes::set(power_of_two_bits(least_product_exponent)), products.top);
    result = Lanes::select(no_products, addend + Lanes::broadcast(0.0f),
                           Lanes::to_float_toward_zero(total) * unit);
  } else {
    // Adding 0 makes +0 of the -0 that a negative sum rounds to.
    result = Lanes::round_to_half(Lanes::to_float_odd(total) * unit) + Lanes::broadcast(0.0f);
  }
  const auto not_finite =
      Lanes::equal(exponent_of_addend<Lanes, binary32>(addend), Lanes::set(float_exponent_mask));
  const auto special = Lanes::either(
      not_finite, Lanes::greater(products.top, Lanes::set(power_of_two_bits(largest_product_exponent))));
  if (Lanes::any(special)) [[unlikely]]
    result = Lanes::select(special, special_sum<Lanes, Accumulator>(step, addend), result);
  // A sum that has wrapped around has another sign than both of its terms.
  const auto too_large = Lanes::negative((products.sum ^ total) & (units ^ total));
  if (Lanes::any(too_large)) [[unlikely]] {
    redo_lanes<Accumulator>(step, Lanes::bits_of_mask(too_large), c);
    result = Lanes::select(too_large, Lanes::load(c), result);
  }
  Lanes::store(c, result);
}

/// One step for rows_at_once x one vector of outputs. `step` and c point at the first of them, as do `tops`.
template <class Lanes, const Format& Accumulator>
void advance_vectors(const TensorCoreOperands& step, const std::int8_t* tops, float* c,
                     std::size_t row_stride) {
  constexpr std::size_t rows_at_once = Outputs<Lanes>::rows_at_once;
  const int floor = Accumulator == binary32 ? least_product_exponent : step.core.binary16_floor;
  const auto scale_times_top = Lanes::set(power_of_two_bits(step.core.fraction_bits + float_bias));
  AlignedSum<Lanes> products[rows_at_once];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < rows_at_once; ++i) {
    const auto exponents = Lanes::load_widened(tops + i * Outputs<Lanes>::columns);
    const auto top =
        Lanes::template shift_left<float_trailing_bits>(Lanes::add(exponents, Lanes::set(float_bias)));
    const auto addend_top = exponent_of_addend<Lanes, Accumulator>(Lanes::load(c + i * row_stride));
    const auto highest = Lanes::max(Lanes::set(power_of_two_bits(floor)), Lanes::max(top, addend_top));
    products[i] = {Lanes::set(0), Lanes::floats_of(Lanes::subtract(scale_times_top, highest)), top};
  }
  for (std::size_t k = 0; k < step.depth; ++k) {
    const auto column = Lanes::load(step.b + k * Outputs<Lanes>::columns);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < rows_at_once; ++i) {
      const auto product = Lanes::broadcast(step.a[k * Outputs<Lanes>::rows + i]) * column;
      products[i].sum = Lanes::add(products[i].sum, Lanes::truncate(product * products[i].scale));
    }
  }
  for (std::size_t i = 0; i < rows_at_once; ++i) {
    TensorCoreOperands of_row = step;
    of_row.a += i;
    finish_step<Lanes, Accumulator>(of_row, products[i], c + i * row_stride);
  }
}

template <class Lanes, const Format& Accumulator>
void advance_tensor_core_tile(const TensorCoreOperands& operands, float* c, std::size_t row_stride) {
  constexpr std::size_t rows = Outputs<Lanes>::rows, columns = Outputs<Lanes>::columns,
                        rows_at_once = Outputs<Lanes>::rows_at_once;
  alignas(64) std::int8_t a_exponents[most_products_per_step * rows];
  alignas(64) std::int8_t b_exponents[most_products_per_step * columns];
  alignas(64) std::int8_t tops[rows_at_once * columns];
  const auto products = static_cast<std::size_t>(operands.core.products_per_step);
  for (std::size_t k = 0; k < operands.depth; k += products) {
    const std::size_t count = operands.depth - k < products ? operands.depth - k : products;
    const float* a = operands.a + k * rows;
    const float* b = operands.b + k * columns;
    find_exponents(a, count * rows, a_exponents);
    find_exponents(b, count * columns, b_exponents);
    for (std::size_t i = 0; i < rows; i += rows_at_once) {
      find_tops<Lanes>(a_exponents + i, b_exponents, count, tops);
      for (std::size_t j = 0; j < columns; j += Lanes::width) {
        advance_vectors<Lanes, Accumulator>({operands.core, a + i, rows, b + j, columns, count}, tops + j,
                                            c + i * row_stride + j, row_stride);
      }
    }
  }
}

template <class Lanes>
constexpr TensorCoreKernel tensor_core_kernel() {
  return {.rows = Outputs<Lanes>::rows,
          .columns = Outputs<Lanes>::columns,
          .advance_binary32 = &advance_tensor_core_tile<Lanes, binary32>,
          .advance_binary16 = &advance_tensor_core_tile<Lanes, binary16>};
}

}  // namespace
}  // namespace fp16::detail
