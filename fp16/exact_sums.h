#pragma once
/// Exact sums of arrays of halves and of products of them: what ExactAccumulator's add and add_product make of each
/// element, hundreds of times as fast. Needs halflab::fp16_bulk.
///
///   ExactAccumulator<binary16> sum;
///   add_products(sum, a, b);
///   const Result<binary32> dot = sum.rounded<binary32>();  // rounded once, whatever the order
///
/// How it is known: against the accumulator, element by element, over arrays of any length with special values, zeros
/// of both signs and cancellation, on every thread count. The bits depend neither on the processor nor on the caller's
/// floating-point environment.

#include <cstdint>
#include <span>

#include "exact_accumulator.h"

namespace fp16 {

/// Adds every element. `threads` contiguous parts are added up at once. Throws std::invalid_argument for fewer than one
/// thread.
void add_values(ExactAccumulator<binary16>& sum, std::span<const std::uint16_t> values, int threads = 1);

/// Adds every a[i] * b[i]. Throws as above, and unless the arrays have the same length.
void add_products(ExactAccumulator<binary16>& sum, std::span<const std::uint16_t> a,
                  std::span<const std::uint16_t> b, int threads = 1);

}  // namespace fp16
