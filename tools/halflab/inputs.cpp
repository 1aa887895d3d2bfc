#include "tools/halflab/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string_view>

#include "experiments/frame/tensor_files/raw.h"
#include "tools/halflab/formats.h"

namespace halflab {
namespace {

namespace files = experiments::tensor_files;

files::Shape shape_of(const std::string& text) {
  files::Shape shape;
  for (const auto part : std::views::split(text, ',')) {
    const std::string_view size(part.begin(), part.end());
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), value);
    if (error != std::errc{} || end != size.data() + size.size())
      throw std::invalid_argument(fmt::format(
          "--shape: '{}' is no shape; allowed: sizes with commas between them, such as 128,64", text));
    shape.push_back(value);
  }
  return shape;
}

std::string some_of(std::span<const std::string_view> names) {
  constexpr std::size_t most = 5;
  return fmt::format("{}{}", fmt::join(names.first(std::min(most, names.size())), ", "),
                     names.size() > most ? fmt::format(" and {} more", names.size() - most) : "");
}

void select(const Inputs& inputs, files::TensorSet& set) {
  if (!inputs.select.empty()) experiments::from_option("--select", [&] { set.select(inputs.select); });
}

}  // namespace

void bind(experiments::CommandLine& command_line, Inputs& inputs, std::size_t at_least) {
  command_line.add_words("PATH", inputs.paths,
                         ".npy, .npz, .safetensors (or its index.json), a folder of these, or raw numbers",
                         at_least);
  command_line.add("--select", inputs.select,
                   "only tensors in whose names this is found, as it stands or else as a regular expression",
                   "TEXT");
  command_line.add("--dtype", inputs.dtype, dtype_help, "FORMAT");
  command_line.add("--shape", inputs.shape, "of a raw file, such as 128,64; a vector without", "SIZES");
}

files::RawLayout raw_layout(const Inputs& inputs, std::string_view dtype_option) {
  std::string_view format;
  if (!inputs.dtype.empty())
    format = experiments::from_option(dtype_option, [&] { return scalar_format(inputs.dtype).name; });
  const auto shape = inputs.shape.empty() ? std::nullopt : std::optional(shape_of(inputs.shape));
  return files::raw_layout(format, shape, {.type = dtype_option});
}

files::TensorSet open(const Inputs& inputs) {
  const files::RawLayout raw = raw_layout(inputs);
  files::TensorSet set(inputs.paths, raw);
  files::require_use_of(raw, set.tensors());
  select(inputs, set);
  return set;
}

std::vector<files::TensorSet> open_each(const Inputs& inputs) {
  const files::RawLayout raw = raw_layout(inputs);
  std::vector<files::TensorSet> sets;
  std::vector<files::StoredTensor> tensors;
  for (const std::string& path : inputs.paths)
    std::ranges::copy(sets.emplace_back(std::vector{path}, raw).tensors(), std::back_inserter(tensors));
  files::require_use_of(raw, tensors);
  for (files::TensorSet& set : sets) select(inputs, set);
  return sets;
}

void require_numbers(const files::TensorSet& set, const std::string& path) {
  if (set.tensors().empty())
    throw std::invalid_argument(set.passed_over().empty()
                                    ? fmt::format("'{}' holds no numbers", path)
                                    : fmt::format("'{}' holds no floating-point numbers; passed over: {} "
                                                  "(--dtype bfloat16 reads integers of 16 "
                                                  "bits as its codes, e4m3 those of 8)",
                                                  path, set.passed_over().front().name));
}

std::string remark_on_integers(const files::TensorSet& set) {
  std::vector<std::string_view> passed_over, codes;
  for (const files::StoredTensor& tensor : set.passed_over()) passed_over.push_back(tensor.name);
  std::string_view format;
  for (const files::StoredTensor& tensor : set.tensors()) {
    if (!tensor.is_codes) continue;
    codes.push_back(tensor.name);
    format = tensor.type->format;
  }
  std::vector<std::string> sentences;
  if (!passed_over.empty())
    sentences.push_back(fmt::format("Passed over, as no floating-point numbers: {}.", some_of(passed_over)));
  if (!codes.empty()) sentences.push_back(fmt::format("Read as codes of {}: {}.", format, some_of(codes)));
  return fmt::format("{}", fmt::join(sentences, " "));
}

}  // namespace halflab
