#include "experiments/frame/tensor_files/raw.h"

#include <fmt/format.h>

#include "experiments/frame/printable.h"

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

}  // namespace experiments::tensor_files
