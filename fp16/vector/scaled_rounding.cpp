#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "fp16/block_arrays.h"
#include "fp16/bulk.h"
#include "fp16/formats.h"
#include "fp16/vector/block_rounding.h"
#include "fp16/vector/environment.h"

namespace fp16 {
namespace {

using namespace detail;

constexpr std::size_t piece_size = 2048;

/// NaNs are left as the products have them; returns whether there are any.
FP16_VECTOR_CLONES bool round_numbers(const Numbers<float>& format, float* values, std::size_t count,
                                      float scale) {
  const Numbers<float> to = format;
  constexpr std::int32_t infinite = infinity_bits<binary32>;
  std::int32_t last = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const float scaled = values[i] * scale;
    const std::int32_t magnitude = magnitude_bits(scaled);
    const std::int32_t sign = std::bit_cast<std::int32_t>(scaled) ^ magnitude;
    const float rounded = nearest(to, at_most(std::bit_cast<float>(magnitude), to.max)).value;
    const std::int32_t is_nan = -static_cast<std::int32_t>(magnitude > infinite);
    values[i] =
        std::bit_cast<float>((std::bit_cast<std::int32_t>(rounded) & ~is_nan) | (magnitude & is_nan) | sign);
    last = std::max(last, magnitude);
  }
  return last > infinite;
}

/// Numbers of the format stay as they are.
template <const Format& F>
void round_by_codes(std::span<float> values) {
  std::array<Bits<F>, piece_size> buffer;
  const std::span<Bits<F>> codes = std::span(buffer).first(values.size());
  encode<F>(values, codes, {.saturate = true});
  decode<F>(std::span<const Bits<F>>(codes), values);
}

template <const Format& F>
void round_all(std::span<float> values, float scale) {
  constexpr Numbers<float> to(F);
  for (std::size_t first = 0; first < values.size(); first += piece_size) {
    const std::span<float> piece = values.subspan(first, std::min(piece_size, values.size() - first));
    const bool has_nan = round_numbers(to, piece.data(), piece.size(), scale);
    if (has_nan || !F.has_negative_zero()) round_by_codes<F>(piece);
  }
}

}  // namespace

void round_scaled(const Format& format, std::span<float> values, float scale) {
  bool found = false;
  for_each_format([&]<const Format & F>() {
    if constexpr (F.width() <= 8 && F.has_arithmetic()) {
      if (F != format) return;
      found = true;
      in_default_environment([&] { round_all<F>(values, scale); });
    }
  });
  if (!found)
    throw std::invalid_argument("round_scaled: format: " + std::string(name_of(format)) +
                                " is not allowed; formats of at most 8 bits with arithmetic");
}

}  // namespace fp16
