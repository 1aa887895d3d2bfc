#include "tools/halflab/formats.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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
  const auto found = std::ranges::find(fp16::block_formats, name, [](const auto* row) { return row->name; });
  return found == fp16::block_formats.end() ? nullptr : *found;
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
