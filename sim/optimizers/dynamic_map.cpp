#include "sim/optimizers/dynamic_map.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <vector>

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

}  // namespace

DynamicMap::DynamicMap(bool has_sign) : values_(dynamic_map(has_sign)) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  code_of_zero_ = static_cast<std::uint8_t>(std::ranges::find(values_, 0.0f) - values_.begin());
  for (std::size_t code = 0; code < 255; ++code) {
    const float midpoint = (values_[code + 1] + values_[code]) * 0.5f;
    const bool lower_is_even = code % 2 == 0;  // it keeps the midpoint itself
    borders_[code] = lower_is_even ? midpoint : std::nextafter(midpoint, -infinity);
  }
  if (has_sign) borders_[code_of_zero_ - 1u] = -std::numeric_limits<float>::denorm_min();
  borders_[255] = infinity;
  for (std::uint32_t prefix = 0; prefix < first_codes_.size(); ++prefix) {
    const std::uint32_t lowest = prefix << 16 | (prefix & 0x8000 ? 0xffff : 0);
    const auto border = std::ranges::lower_bound(borders_, std::bit_cast<float>(lowest));
    first_codes_[prefix] = static_cast<std::uint8_t>(border - borders_.begin());
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
  const unsigned first = first_codes_[std::bit_cast<std::uint32_t>(value) >> 16];
  const unsigned code = first + (borders_[first] < value);
  return static_cast<std::uint8_t>(value == value ? code : 0);
}

float DynamicMap::quantise(std::span<const float> in, std::span<std::uint8_t> codes) const {
  const float maximum = largest_magnitude(in);
  if (maximum == 0) {
    std::ranges::fill(codes, code_of_zero_);
  } else {
    std::ranges::transform(in, codes.begin(), [&](float value) { return nearest(value / maximum); });
  }
  return maximum;
}

void DynamicMap::dequantise(std::span<const std::uint8_t> codes, float maximum, std::span<float> out) const {
  std::ranges::transform(codes, out.begin(), [&](std::uint8_t code) { return values_[code] * maximum; });
}

}  // namespace sim
