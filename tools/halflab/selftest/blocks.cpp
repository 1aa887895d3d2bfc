#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>

#include "fp16/block_arrays.h"
#include "tools/halflab/selftest/array_call.h"
#include "tools/halflab/selftest/groups.h"

namespace halflab::selftest {
namespace {

/// Blocks of numbers near each other, a few of them with zeros, infinities, NaNs or borders of binary32.
std::vector<float> values_of_blocks(std::size_t count) {
  const std::vector<double> moderate = moderate_numbers(count, 5);
  const fp16::Philox random{.key = 49};
  constexpr std::size_t stretch = 64;
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    const int exponent = static_cast<int>(random.bits(i / stretch) % 277) - 149;
    float value = static_cast<float>(std::ldexp(moderate[i], exponent));
    const auto [place, kind, bits, ignored] = random.block(count + i);
    if (place % 128 == 0) {
      const std::array special{0.0f, -0.0f, INFINITY, std::bit_cast<float>(bits)};
      value = special[kind % special.size()];
    }
    values.push_back(value);
  }
  return values;
}

std::uint64_t hash_of(const fp16::BlockFormat& format, fp16::ScaleRule rule) {
  constexpr std::size_t length = 130, inner = 3, count = 16 * length * inner;
  const std::vector<float> values = values_of_blocks(count);
  const std::vector<std::uint32_t> random = drawn(count);
  Fnv1a hash;
  for (const bool is_drawn : {false, true}) {
    for (const fp16::BlockAxis axis :
         {fp16::BlockAxis{.length = length}, fp16::BlockAxis{.length = length, .inner = inner}}) {
      fp16::BlockArrayOptions options{.scale_rule = rule,
                                      .tensor_scale = format.has_tensor_scale ? 0.37f : 1.0f};
      if (is_drawn) options.random_bits = random;
      std::vector<std::uint8_t> scales(count / length * format.block_count(length)), elements(count);
      encode_blocks(format, values, axis, scales, elements, options);
      hash.add(std::span<const std::uint8_t>(scales));
      hash.add(std::span<const std::uint8_t>(elements));
      std::vector<float> rounded = values;
      round_to_blocks(format, rounded, axis, options);
      hash.add(std::span<const float>(rounded));
    }
  }
  return hash.value();
}

}  // namespace

std::vector<Row> block_rows() {
  std::vector<Row> rows;
  for (const fp16::BlockFormat* format : fp16::block_formats) {
    for (const fp16::ScaleRule rule : fp16::scale_rules)
      rows.push_back(
          {fmt::format("{} {}", format->name, name_of(rule)), [=] { return hash_of(*format, rule); }});
  }
  return rows;
}

}  // namespace halflab::selftest
