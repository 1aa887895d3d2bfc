#include "sim/optimizers/dynamic_map.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <vector>

#include "fp16/config.h"
#include "sim/tensor/extremes.h"

namespace sim {
namespace {

/// torch.linspace(0.1, 1, count) in binary32: forward from the start up to the middle, backward from the end.
std::vector<float> linspace(int count) {
  constexpr float start = 0.1f, end = 1;
  const float step = (end - start) / static_cast<float>(count - 1);
  std::vector<float> points;
  for (int i = 0; i < count; ++i) {
    points.push_back(i < count / 2 ? start + step * static_cast<float>(i)
                                   : end - step * static_cast<float>(count - 1 - i));
  }
  return points;
}

std::array<float, 256> dynamic_map(bool has_sign) {
  constexpr std::array powers_of_ten{1e-6f, 1e-5f, 1e-4f, 1e-3f, 1e-2f, 1e-1f, 1e0f};
  std::vector<float> numbers{0, 1};
  for (std::size_t decade = 0; decade < powers_of_ten.size(); ++decade) {
    const int intervals = 1 << (decade + (has_sign ? 0 : 1));
    const std::vector<float> points = linspace(intervals + 1);
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
      const float number = powers_of_ten[decade] * ((points[i] + points[i + 1]) / 2);
      numbers.push_back(number);
      if (has_sign) numbers.push_back(-number);
    }
  }
  std::ranges::sort(numbers);
  std::array<float, 256> map;
  assert(numbers.size() == map.size());
  std::ranges::copy(numbers, map.begin());
  return map;
}

// Codes depend on magnitudes from 2^-23 to 1: below lie no borders, above none either. Floats begin with the same 16
// bits in groups of 2^16, with a row of the table each, positive ones first; the last row is that of NaNs.
constexpr std::int32_t lowest = std::bit_cast<std::int32_t>(0x1p-23f),
                       highest = std::bit_cast<std::int32_t>(1.0f);
constexpr std::int32_t rows_of_a_sign = ((highest - lowest) >> 16) + 1, row_of_nans = 2 * rows_of_a_sign;

/// Where the code of a value is looked up.
struct Place {
  std::int32_t row;
  std::int32_t in_row;  ///< 0 for the lowest value of the row, 2^16 - 1 for the highest
};

/// Without branches.
[[gnu::always_inline]] inline Place place_of(float value) {
  const auto bits = std::bit_cast<std::int32_t>(value + 0.0f);  // no -0
  const std::int32_t negative = bits >> 31, magnitude = bits & 0x7fffffff;
  const std::int32_t is_nan = magnitude > 0x7f800000 ? -1 : 0;
  const std::int32_t clamped = std::min(std::max(magnitude, lowest), highest);
  const std::int32_t row = ((clamped - lowest) >> 16) + (negative & rows_of_a_sign);
  return {.row = (row & ~is_nan) | (row_of_nans & is_nan), .in_row = (clamped ^ negative) & 0xffff};
}

/// The lowest value of a row.
float start_of(std::int32_t row) {
  const bool negative = row >= rows_of_a_sign;
  const std::int32_t first = lowest + ((row - (negative ? rows_of_a_sign : 0)) << 16);
  const float start = std::bit_cast<float>(negative ? first | 0xffff : first);
  return negative ? -start : start;
}

FP16_VECTOR_CLONES void find_places(std::span<const float> values, float divisor,
                                    std::int32_t* __restrict__ rows, std::int32_t* __restrict__ in_rows) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Place place = place_of(values[i] / divisor);
    rows[i] = place.row;
    in_rows[i] = place.in_row;
  }
}

FP16_VECTOR_CLONES void look_up(const std::array<float, 256>& values, std::span<const std::uint8_t> codes,
                                float factor, float* __restrict__ out) {
  for (std::size_t i = 0; i < codes.size(); ++i) out[i] = values[codes[i]] * factor;
}

}  // namespace

DynamicMap::DynamicMap(bool has_sign) : values_(dynamic_map(has_sign)), steps_(row_of_nans + 1) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  code_of_zero_ = static_cast<std::uint8_t>(std::ranges::find(values_, 0.0f) - values_.begin());
  std::array<float, 256> borders;  // a value's code is how many of these it exceeds; none exceeds the last
  for (std::size_t code = 0; code < 255; ++code) {
    const float midpoint = (values_[code + 1] + values_[code]) * 0.5f;
    const bool lower_is_even = code % 2 == 0;  // it keeps the midpoint itself
    borders[code] = lower_is_even ? midpoint : std::nextafter(midpoint, -infinity);
  }
  if (has_sign) borders[code_of_zero_ - 1u] = -std::numeric_limits<float>::denorm_min();
  borders[255] = infinity;
  for (std::int32_t row = 0; row < row_of_nans; ++row) {
    const auto border = std::ranges::lower_bound(borders, start_of(row));
    const Place place = place_of(*border);
    const std::int32_t last_below = place.row == row ? place.in_row : 0xffff;
    steps_[row] = static_cast<std::uint32_t>((border - borders.begin()) << 16) + (0xffff - last_below);
  }
}

const DynamicMap& DynamicMap::with_sign() {
  static const DynamicMap map(true);
  return map;
}

const DynamicMap& DynamicMap::without_sign() {
  static const DynamicMap map(false);
  return map;
}

std::uint8_t DynamicMap::nearest(float value) const {
  const Place place = place_of(value);
  return static_cast<std::uint8_t>((steps_[place.row] + place.in_row) >> 16);
}

float DynamicMap::quantise(std::span<const float> in, std::span<std::uint8_t> codes) const {
  const float maximum = largest_magnitude(in);
  if (maximum == 0) {
    std::ranges::fill(codes, code_of_zero_);
    return maximum;
  }
  std::array<std::int32_t, block> rows, in_rows;
  for (std::size_t first = 0; first < in.size(); first += block) {
    const std::size_t count = std::min(block, in.size() - first);
    find_places(in.subspan(first, count), maximum, rows.data(), in_rows.data());
    for (std::size_t i = 0; i < count; ++i)
      codes[first + i] = static_cast<std::uint8_t>((steps_[rows[i]] + in_rows[i]) >> 16);
  }
  return maximum;
}

void DynamicMap::dequantise(std::span<const std::uint8_t> codes, float maximum, std::span<float> out) const {
  look_up(values_, codes, maximum, out.data());
}

}  // namespace sim
