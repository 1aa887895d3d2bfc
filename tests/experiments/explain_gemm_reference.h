#pragma once
/// Products of matrices from their definition, output by output and rounding by rounding, in 512-bit fixed
/// point: nothing of the library is used.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tests/fp16/mma_oracle.h"

namespace oracle::gemm {

using Output = oracle::mma::Output;

/// The next sum after the products of one step: binary32 or binary16 codes.
struct Steps {
  Output accumulator;
  std::size_t length;
  std::function<std::uint32_t(std::span<const std::uint16_t> a, std::span<const std::uint16_t> b,
                              std::uint32_t sum)>
      step;
};

Steps fp32_chain();
Steps fp16_fma_chain();
Steps fp16_mul_add_chain();
Steps tensor_core(const oracle::mma::Parameters& parameters, Output accumulator);

enum class Reduction { fp32, fp16_partials, fp16, fp16_in_place };

/// Which slice adds up the products of `k`; slices are contiguous or not, and products stay in ascending order.
using SliceOf = std::function<std::size_t(std::size_t k)>;

struct Recipe {
  Steps steps;
  std::size_t slice_length;  ///< of contiguous slices
  Reduction reduction = Reduction::fp32;
  bool pairwise = false;  ///< neighbouring slices first, in place of one after the other
  SliceOf slice_of = {};  ///< in the place of slice_length
  bool halving = false;   ///< the upper half of the slices to the lower one, until one is left
};

/// Rounds the exact number to nearest-even.
std::uint32_t nearest(const oracle::mma::Fixed& value, Output format);
/// A finite code.
oracle::mma::Fixed exact(std::uint32_t code, Output format);
/// The exact product; a multiple of 2^-200.
oracle::mma::Fixed times(const oracle::mma::Fixed& a, const oracle::mma::Fixed& b);

/// The reduced sum of the products, a binary32 code; it starts from `start`, a code of the accumulator's
/// format.
std::uint32_t dot(const Recipe& recipe, std::span<const std::uint16_t> a, std::span<const std::uint16_t> b,
                  std::uint32_t start = 0);

}  // namespace oracle::gemm
