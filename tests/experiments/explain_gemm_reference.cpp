#include "tests/experiments/explain_gemm_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

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

std::uint32_t chained(const Steps& steps, std::span<const std::uint16_t> a, std::span<const std::uint16_t> b,
                      std::uint32_t sum) {
  for (std::size_t k = 0; k < a.size(); k += steps.length) {
    const std::size_t count = std::min(steps.length, a.size() - k);
    sum = steps.step(a.subspan(k, count), b.subspan(k, count), sum);
  }
  return sum;
}

std::uint32_t through_half(std::uint32_t binary32) {
  return as_binary32(rounded_to_half(binary32), Output::binary16);
}

std::uint32_t reduced(const Recipe& recipe, std::vector<std::uint32_t> partials) {
  const bool in_place = recipe.reduction == Reduction::fp16_in_place;
  if (recipe.reduction == Reduction::fp16 || recipe.reduction == Reduction::fp16_partials) {
    for (std::uint32_t& partial : partials) partial = through_half(partial);
  }
  const auto sum_of = [&](std::uint32_t x, std::uint32_t y) {
    const std::uint32_t sum = add(x, y, Output::binary32);
    return recipe.reduction == Reduction::fp16 || in_place ? through_half(sum) : sum;
  };
  if (in_place) partials.front() = through_half(partials.front());
  for (; recipe.halving && partials.size() > 1; partials.resize(partials.size() / 2)) {
    const auto upper = partials.begin() + static_cast<std::ptrdiff_t>(partials.size() / 2);
    std::transform(partials.begin(), upper, upper, partials.begin(), sum_of);
  }
  if (!recipe.pairwise)
    return std::accumulate(partials.begin() + 1, partials.end(), partials.front(), sum_of);
  while (partials.size() > 1) {
    std::vector<std::uint32_t> next;
    for (std::size_t i = 0; i < partials.size(); i += 2)
      next.push_back(i + 1 < partials.size() ? sum_of(partials[i], partials[i + 1]) : partials[i]);
    partials = std::move(next);
  }
  return partials.front();
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
  std::map<std::size_t, std::pair<std::vector<std::uint16_t>, std::vector<std::uint16_t>>> slices;
  for (std::size_t k = 0; k < a.size(); ++k) {
    auto& slice = slices[recipe.slice_of ? recipe.slice_of(k) : k / recipe.slice_length];
    slice.first.push_back(a[k]);
    slice.second.push_back(b[k]);
  }
  std::vector<std::uint32_t> partials;
  for (const auto& [index, slice] : slices) {
    const std::uint32_t sum = chained(recipe.steps, slice.first, slice.second, partials.empty() ? start : 0);
    partials.push_back(as_binary32(sum, recipe.steps.accumulator));
  }
  return reduced(recipe, partials);
}

}  // namespace oracle::gemm
