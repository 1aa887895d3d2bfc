#pragma once
/// What the experiments say of gradients that they have counted by their exponents.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "experiments/frame/record.h"
#include "fp16/exponent_histogram.h"

namespace experiments {

/// `count` of `whole`; 0 of nothing.
double share_of(std::uint64_t whole, std::uint64_t count);

/// `count` over the finite non-zero gradients; 0 where there is none.
double share_of_nonzero(const fp16::ExponentHistogram& gradients, std::uint64_t count);

/// log2 of the largest power of two that leaves every counted gradient an octave below FP16's largest finite
/// value: floor(log2(65504 / largest)) - 1. None without a finite non-zero gradient.
std::optional<int> recommended_scale_log2(const fp16::ExponentHistogram& gradients);

/// "3 of 5 gradients are infinite or NaN in FP32 already, which no loss scale cures"; empty where all are
/// finite.
std::string nonfinite_clause(const fp16::ExponentHistogram& fp32_gradients);

/// "the largest gradient of hidden2 is 2^-9.8, 15.2 octaves above the 2^-25 where nearest-even rounding
/// reaches zero".
std::string octaves_alive_clause(std::string_view tensor, double octaves_alive);

/// For the summary: the value, or "none".
template <class T>
Value value_or_none(const std::optional<T>& value) {
  return value ? Value(*value) : Value("none");
}

}  // namespace experiments
