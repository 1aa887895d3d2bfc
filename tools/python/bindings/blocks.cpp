/// Block formats: arrays of small numbers with a scale for every few of them.

#include <string>
#include <vector>

#include "fp16/block.h"
#include "fp16/block_arrays.h"
#include "fp16/names.h"
#include "fp16/scale_rule_names.h"
#include "tools/python/bindings/arguments.h"
#include "tools/python/bindings/bindings.h"

namespace halflab_python {
namespace {

/// The row by its name.
template <class Visit>
void with_block_format(std::string_view name, Visit&& visit) {
  std::vector<std::string> names;
  bool found = false;
  fp16::for_each_block_format([&]<const fp16::BlockFormat & B>() {
    names.emplace_back(B.name);
    if (B.name != name) return;
    found = true;
    visit.template operator()<B>();
  });
  if (!found) throw std::invalid_argument(names::unknown_name_message("block format", name, names));
}

/// The rule of a block format's scales. NVFP4's are no powers of two and follow from the format alone.
template <const fp16::BlockFormat& B>
fp16::ScaleRule checked_rule(const std::optional<std::string>& name) {
  if (!name) return fp16::ScaleRule::floor;
  const fp16::ScaleRule rule = names::find_by_name(fp16::named_scale_rules, "scale_rule", *name).rule;
  if constexpr (B.has_tensor_scale) {
    throw std::invalid_argument("scale_rule = '" + *name + "' is not allowed with " + std::string(B.name) +
                                ", whose scales are no powers of two; allowed: None");
  }
  return rule;
}

py::object round_to_blocks(const py::object& values, const std::string& format,
                           const std::optional<std::string>& scale_rule, const py::object& seed_or_none) {
  const py::array given = reals(values);
  if (given.ndim() == 0)
    throw std::invalid_argument(
        "round_to_blocks: a scalar is not allowed; allowed: arrays of one or more dimensions");
  const Array<float> rounded_to_float(given);
  std::vector<float> numbers(rounded_to_float.data(), rounded_to_float.data() + rounded_to_float.size());
  const std::optional<std::uint64_t> seed = seed_argument(seed_or_none);
  const RoundingArguments rounding{
      .attributes = {.rounding = seed ? fp16::Rounding::stochastic : fp16::Rounding::nearest_even},
      .seed = seed};
  const std::vector<std::uint32_t> random = rounding.random_bits(numbers.size());
  py::array_t<double> result = empty_like<double>(given);
  with_block_format(format, [&]<const fp16::BlockFormat & B>() {
    fp16::BlockArrayOptions options{.scale_rule = checked_rule<B>(scale_rule), .random_bits = random};
    if (numbers.empty()) return;
    if constexpr (B.has_tensor_scale)
      options.tensor_scale = fp16::tensor_scale<B>(fp16::absolute_maximum(numbers));
    fp16::round_to_blocks(B, numbers, {.length = static_cast<std::size_t>(given.shape(given.ndim() - 1))},
                          options);
    std::ranges::transform(numbers, result.mutable_data(), [&](float value) {
      return static_cast<double>(value) * static_cast<double>(options.tensor_scale);
    });
  });
  return unwrapped(result);
}

py::dict block_formats() {
  py::dict table;
  fp16::for_each_block_format([&]<const fp16::BlockFormat & B>() {
    py::dict row;
    row["element"] = fp16::name_of(B.element);
    row["scale"] = fp16::name_of(B.scale);
    row["block_size"] = B.block_size;
    row["has_tensor_scale"] = B.has_tensor_scale;
    row["bits_per_value"] = B.bits_per_value();
    table[py::str(std::string(B.name))] = row;
  });
  return table;
}

}  // namespace

void bind_blocks(py::module_& module) {
  define(module, "round_to_blocks(values, format, scale_rule=None, seed=None)",
         "What one of halflab.block_formats keeps of float32 values (others are first rounded to float32):\n"
         "element * scale, blocks along the last axis, a shorter one at its end. scale_rule, of scales that "
         "are\n"
         "powers of two: 'floor' (MX; the one that None stands for), 'ceil', 'rceil' (NVIDIA), 'even'. With "
         "a seed\n"
         "elements round stochastically. NVFP4 has the usual scale of the whole array. An infinity or NaN "
         "makes\n"
         "its block NaN, of NVFP4 the whole array.\n\n"
         ">>> halflab.round_to_blocks([1.0, 2.2, 40.0], 'mxfp4')\n"
         "array([ 0.,  4., 32.])",
         round_to_blocks);
  module.attr("block_formats") = block_formats();
}

}  // namespace halflab_python
