#include "tests/experiments/explain_gemm_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace oracle::gemm {
namespace {

using oracle::mma::Fixed;

bool is_finite(std::uint32_t code, Output format) {
  return std::isfinite(oracle::mma::value_of(format, code));
}

std::uint32_t add(std::uint32_t x, std::uint32_t y, Output format) {
  if (!is_finite(x, format)) return x;
  if (!is_finite(y, format)) return y;
  return nearest(exact(x, format) + exact(y, format), format);
}

/// The code of one format in another that contains its value.
std::uint32_t as_binary32(std::uint32_t code, Output format) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(oracle::mma::value_of(format, code)));
}

std::uint32_t rounded_to_half(std::uint32_t binary32) {
  const float value = std::bit_cast<float>(binary32);
  if (std::isinf(value)) return value < 0 ? 0xfc00 : 0x7c00;
  return nearest(exact(binary32, Output::binary32), Output::binary16);
}

}  // namespace

std::uint32_t nearest(const Fixed& value, Output format) {
  return oracle::mma::round_to_format(value, format, Direction::nearest_even);
}

Fixed exact(std::uint32_t code, Output format) {
  return oracle::mma::fixed(oracle::mma::value_of(format, code));
}

Fixed times(const Fixed& a, const Fixed& b) {
  using boost::multiprecision::cpp_int;
  return Fixed(cpp_int(a) * cpp_int(b) / cpp_int(oracle::mma::fixed(1.0)));
}

Steps fp32_chain() {
  return {Output::binary32, 1,
          [](std::span<const std::uint16_t> a, std::span<const std::uint16_t> b, std::uint32_t sum) {
            return nearest(exact(sum, Output::binary32) + oracle::mma::product(a[0], b[0]).value,
                           Output::binary32);
          }};
}

Steps fp16_fma_chain() {
  return {Output::binary16, 1,
          [](std::span<const std::uint16_t> a, std::span<const std::uint16_t> b, std::uint32_t sum) {
            if (!is_finite(sum, Output::binary16)) return sum;
            return nearest(exact(sum, Output::binary16) + oracle::mma::product(a[0], b[0]).value,
                           Output::binary16);
          }};
}

Steps fp16_mul_add_chain() {
  return {Output::binary16, 1,
          [](std::span<const std::uint16_t> a, std::span<const std::uint16_t> b, std::uint32_t sum) {
            return add(sum, nearest(oracle::mma::product(a[0], b[0]).value, Output::binary16),
                       Output::binary16);
          }};
}

Steps tensor_core(const oracle::mma::Parameters& parameters, Output accumulator) {
  return {accumulator, static_cast<std::size_t>(parameters.products_per_step),
          [=](std::span<const std::uint16_t> a, std::span<const std::uint16_t> b, std::uint32_t sum) {
            return oracle::mma::step(parameters, accumulator, a, b, sum);
          }};
}

std::uint32_t dot(const Recipe& recipe, std::span<const std::uint16_t> a, std::span<const std::uint16_t> b,
                  std::uint32_t start) {
  const Output accumulator = recipe.steps.accumulator;
  const bool in_halves = recipe.reduction == Reduction::fp16;
  const bool stored_as_halves = in_halves || recipe.reduction == Reduction::fp16_partials;
  std::uint32_t total = 0;
  for (std::size_t first = 0; first < a.size(); first += recipe.slice_length) {
    const std::size_t end = std::min(first + recipe.slice_length, a.size());
    std::uint32_t sum = first == 0 ? start : 0;
    for (std::size_t k = first; k < end; k += recipe.steps.length) {
      const std::size_t count = std::min(recipe.steps.length, end - k);
      sum = recipe.steps.step(a.subspan(k, count), b.subspan(k, count), sum);
    }
    std::uint32_t partial = as_binary32(sum, accumulator);
    if (stored_as_halves) partial = as_binary32(rounded_to_half(partial), Output::binary16);
    total = first == 0 ? partial : add(total, partial, Output::binary32);
    if (in_halves) total = as_binary32(rounded_to_half(total), Output::binary16);
  }
  return total;
}

}  // namespace oracle::gemm
