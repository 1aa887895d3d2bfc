#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "fp16/block.h"
#include "fp16/codec.h"
#include "fp16/formats.h"
#include "fp16/names.h"
#include "fp16/philox.h"
#include "fp16/scale_rule_names.h"
#include "tools/halflab/show/numbers.h"
#include "tools/page/engine/answer.h"
#include "tools/page/engine/engine.h"
#include "tools/page/engine/rows_of_numbers.h"

namespace halflab::page {
namespace {

using Json = nlohmann::ordered_json;
using fp16::BlockFormat;

constexpr std::size_t most_values = 64;

Json of(const BlockFormat& format) {
  return {{"name", format.name},
          {"element", fp16::name_of(format.element)},
          {"scale", fp16::name_of(format.scale)},
          {"block_size", format.block_size},
          {"bits_per_value", format.bits_per_value()},
          {"has_tensor_scale", format.has_tensor_scale}};
}

Json formats() {
  Json rows = Json::array();
  for (const BlockFormat* format : fp16::block_formats) rows.push_back(of(*format));
  return {{"formats", rows}, {"rules", names::names_of(fp16::named_scale_rules)}};
}

std::vector<float> read_values(std::string_view row) {
  std::vector<float> values;
  for (const std::uint32_t bits : read_row<fp16::binary32>(row, most_values))
    values.push_back(std::bit_cast<float>(bits));
  return values;
}

/// A row, one number of which is made an outlier: the last one where it is too short.
struct Row {
  std::vector<float> values;
  std::size_t place;
};

Row row_of(std::string_view text, std::size_t place, int exponent) {
  Row row{read_values(text), place};
  row.place = std::min(place, row.values.size() - 1);
  row.values[row.place] = std::ldexp(row.values[row.place], exponent);
  return row;
}

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

/// A row in a block format.
template <const BlockFormat& B>
struct Encoded {
  fp16::BlockOptions options;
  std::vector<fp16::ScaleBits<B>> scales;
  std::vector<fp16::ElementBits<B>> elements;
  std::vector<double> decoded;

  Encoded(const std::vector<float>& values, fp16::ScaleRule rule)
      : options{.scale_rule = rule},
        scales(B.block_count(values.size())),
        elements(values.size()),
        decoded(values.size()) {
    if constexpr (B.has_tensor_scale)
      options.tensor_scale = fp16::tensor_scale<B>(fp16::absolute_maximum(values));
    fp16::encode_blocks<B>(values, scales, elements, options);
    fp16::decode_blocks<B>(elements, scales, decoded, options.tensor_scale);
  }

  /// What became of the others in the block of the outlier: how many of the finite ones are now zero and no number, and what
  /// they lost.
  Json neighbours(const Row& row) const {
    const std::size_t first = row.place / B.block_size * B.block_size;
    const std::size_t end = std::min(first + B.block_size, row.values.size());
    int count = 0, zeros = 0, broken = 0;
    double errors = 0, squares = 0;
    for (std::size_t i = first; i < end; ++i) {
      if (i == row.place) continue;
      const double wanted = row.values[i];
      ++count;
      if (!std::isfinite(wanted)) continue;
      zeros += decoded[i] == 0 && wanted != 0;
      broken += !std::isfinite(decoded[i]);
      errors += (decoded[i] - wanted) * (decoded[i] - wanted);
      squares += wanted * wanted;
    }
    return {{"count", count},
            {"zeros", zeros},
            {"broken", broken},
            {"relative_error", errors == 0 ? 0 : std::sqrt(errors / squares)}};
  }

  /// The numbers that a block can hold, without their signs, where they are few.
  Json levels(std::size_t block) const {
    Json values = Json::array();
    if (B.element.width() > 6) return values;
    for (std::uint64_t code = 0; code <= B.element.max_finite_code(); ++code)
      values.push_back(fp16::decode_element<B>(static_cast<fp16::ElementBits<B>>(code), scales[block],
                                               options.tensor_scale));
    return values;
  }

  Json number(float given, std::size_t i) const {
    const show::Description element = show::describe(B.element, elements[i]);
    return {{"given", given},
            {"text", show::describe(fp16::binary32, bits_of(given)).shortest},
            {"code", element.code_text},
            {"fields", element.fields},
            {"element", element.brief},
            {"decoded", decoded[i]},
            {"relative_error", given == 0 ? Json() : Json((decoded[i] - given) / given)}};
  }

  Json json(const Row& row) const {
    Json blocks = Json::array(), numbers = Json::array();
    for (std::size_t block = 0; block < scales.size(); ++block) {
      const show::Description scale = show::describe(B.scale, scales[block]);
      blocks.push_back({{"code", scale.code_text}, {"value", scale.brief}, {"levels", levels(block)}});
    }
    for (std::size_t i = 0; i < elements.size(); ++i) numbers.push_back(number(row.values[i], i));
    return {{"format", of(B)},
            {"tensor_scale", show::describe(fp16::binary32, bits_of(options.tensor_scale)).brief},
            {"scales", blocks},
            {"numbers", numbers},
            {"place", row.place},
            {"neighbours", neighbours(row)}};
  }
};

Json blocks(std::string_view format, std::string_view rule_name, const Row& row) {
  const fp16::ScaleRule rule = names::find_by_name(fp16::named_scale_rules, "scale rule", rule_name).rule;
  Json found, all = Json::array();
  fp16::for_each_block_format([&]<const BlockFormat & B>() {
    const Encoded<B> encoded(row.values, rule);
    all.push_back({{"format", of(B)}, {"neighbours", encoded.neighbours(row)}});
    if (B.name == format) found = encoded.json(row);
  });
  if (found.is_null()) throw std::invalid_argument(fmt::format("there is no block format '{}'", format));
  found["all"] = all;
  return found;
}

/// Numbers from -1 to 1, to three decimals, as a reader would type them.
std::string random_row(std::uint64_t seed) {
  const fp16::Philox random{.key = seed};
  std::string row;
  for (std::size_t i = 0; i < 32; ++i)
    row += fmt::format("{}{:.3f}", i ? " " : "", std::ldexp(random.bits(i), -31) - 1);
  return row;
}

}  // namespace
}  // namespace halflab::page

const char* engine_block_formats() {
  return halflab::page::answer(halflab::page::formats());
}

const char* engine_blocks(const char* format, const char* rule, const char* row, double place,
                          double exponent) {
  using namespace halflab::page;
  return answer(
      blocks(format, rule, row_of(row, static_cast<std::size_t>(place), static_cast<int>(exponent))));
}

const char* engine_random_row(double seed) {
  using namespace halflab::page;
  return answer(random_row(static_cast<std::uint64_t>(seed)));
}
