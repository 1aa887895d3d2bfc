#include "experiments/frame/tensor_files/raw.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "experiments/frame/printable.h"
#include "experiments/frame/tensor_files/file_format.h"

namespace experiments::tensor_files {

Contents parse_raw(Bytes bytes, const std::filesystem::path& file, const RawLayout& raw) {
  if (raw.type == nullptr) {
    const bool is_pickle =
        file.extension() == ".pt" || file.extension() == ".pth" || file.extension() == ".pkl";
    refuse(
        file,
        is_pickle
            ? "is a pickle, which can run code; write it again with safetensors.torch.save_file or numpy.save"
            : "is none of .npy, .npz, .safetensors; halflab reads raw numbers with --dtype");
  }
  StoredTensor tensor{.name = one_line(file.stem().string()), .type = raw.type, .data = bytes, .file = file};
  tensor.shape = raw.shape.value_or(Shape{bytes.size() * 8 / static_cast<std::uint64_t>(raw.type->bits)});
  tensor.elements = element_count(tensor.shape, fmt::format("file '{}'", file.string()));
  if (tensor.bytes() != bytes.size())
    refuse(file, fmt::format("has {} bytes where the shape {} and {} want {}", bytes.size(),
                             text_of(tensor.shape), raw.type->format, tensor.bytes()));
  return {.tensors = {std::move(tensor)}, .metadata = {}};
}

RawLayout raw_layout(std::string_view format, std::optional<Shape> shape, const RawLayoutNames& names) {
  RawLayout raw{.type = format.empty() ? nullptr : type_of_format(format), .shape = std::move(shape)};
  if (raw.type == nullptr && !format.empty())
    throw std::invalid_argument(fmt::format("{}{}: '{}' lies in no file; allowed: {}", names.before,
                                            names.type, format, readable_formats()));
  if (raw.shape && raw.type == nullptr)
    throw std::invalid_argument(
        fmt::format("{}{}: is of raw files, which need {}, too", names.before, names.shape, names.type));
  return raw;
}

void require_use_of(const RawLayout& raw, std::span<const StoredTensor> tensors,
                    const RawLayoutNames& names) {
  const auto is_raw = [](const StoredTensor& tensor) { return !has_known_extension(tensor.file); };
  if (raw.shape && std::ranges::none_of(tensors, is_raw))
    throw std::invalid_argument(
        fmt::format("{}{}: no raw file is read; allowed beside one", names.before, names.shape));
  if (raw.type == nullptr || tensors.empty()) return;
  if (std::ranges::find(tensors, raw.type, &StoredTensor::type) != tensors.end()) return;
  throw std::invalid_argument(fmt::format("{}{}: {} is of the file's own type, {}; allowed: {}", names.before,
                                          names.type, tensors.front().place(), tensors.front().type->format,
                                          names.none));
}

}  // namespace experiments::tensor_files
