#include "tools/halflab/formats.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <vector>

#include "experiments/frame/tensor_files/element_type.h"
#include "fp16/format_names.h"
#include "fp16/names.h"

namespace halflab {

const fp16::NamedFormat& scalar_format(std::string_view name) {
  std::string_view known = fp16::name_in_table(name);
  if (const auto* const type = experiments::tensor_files::type_of_safetensors(name);
      type && !type->format.empty())
    known = type->format;
  return names::find_by_name(fp16::formats, "format", known);
}

const fp16::BlockFormat* block_format(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto found = std::ranges::find(fp16::block_formats, lower, [](const auto* row) { return row->name; });
  return found == fp16::block_formats.end() ? nullptr : *found;
}

const fp16::NamedFormat& scalar_format_where_blocks_are(std::string_view name) {
  try {
    return scalar_format(name);
  } catch (const std::invalid_argument& error) {
    const bool is_any = name == "fp8" || name == "FP8" || name == "float8";
    throw std::invalid_argument(
        fmt::format("--format: {}, {}{}", error.what(), block_format_names(),
                    is_any ? "; FP8 is e4m3 (of weights and activations) or e5m2 (of gradients)" : ""));
  }
}

std::string scalar_format_names() {
  return fmt::format("{}", fmt::join(names::names_of(fp16::formats), ", "));
}

std::string block_format_names() {
  std::vector<std::string_view> names;
  for (const fp16::BlockFormat* const row : fp16::block_formats) names.push_back(row->name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace halflab
