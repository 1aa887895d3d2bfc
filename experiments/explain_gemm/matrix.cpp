#include "experiments/explain_gemm/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "experiments/frame/files.h"
#include "experiments/frame/tensor_files/element_reader.h"
#include "experiments/frame/tensor_files/npy.h"
#include "experiments/frame/tensor_files/tensor_set.h"

namespace experiments::explain_gemm {
namespace {

namespace files = tensor_files;

template <class Code>
std::vector<std::uint32_t> codes_of(const files::StoredTensor& tensor) {
  const std::vector<std::byte> bytes = files::read_elements(tensor);
  std::vector<std::uint32_t> codes(tensor.elements);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    Code code;
    std::memcpy(&code, bytes.data() + i * sizeof(Code), sizeof(Code));
    codes[files::logical_index(tensor, i)] = code;
  }
  return codes;
}

}  // namespace

Matrix read_matrix(const std::string& place) {
  const files::NamedTensor named(place);
  const files::StoredTensor& tensor = named.tensor();
  const auto refuse = [&](std::string_view problem) { files::refuse(tensor.file, problem); };
  if (tensor.shape.size() != 2)
    refuse(fmt::format("has the shape {}; allowed: two dimensions", files::text_of(tensor.shape)));
  if (tensor.elements == 0)
    refuse(fmt::format("has a dimension of 0, in the shape {}", files::text_of(tensor.shape)));
  constexpr std::array allowed{fp16::binary16, fp16::bfloat16, fp16::binary32};
  const auto format = std::ranges::find_if(
      allowed, [&](const fp16::Format& each) { return fp16::name_of(each) == tensor.type->format; });
  if (format == allowed.end())
    refuse(fmt::format("holds {}; allowed: binary16 (float16), bfloat16, binary32 (float32)",
                       tensor.type->format));
  return {
      .format = *format,
      .rows = tensor.shape[0],
      .columns = tensor.shape[1],
      .codes = *format == fp16::binary32 ? codes_of<std::uint32_t>(tensor) : codes_of<std::uint16_t>(tensor)};
}

void write_matrix(const std::filesystem::path& file, const Matrix& matrix) {
  std::string bytes =
      files::npy_header(*files::type_of_format(fp16::name_of(matrix.format)), {matrix.rows, matrix.columns});
  for (const std::uint32_t code : matrix.codes)
    bytes.append(reinterpret_cast<const char*>(&code), static_cast<std::size_t>(matrix.format.size_bytes()));
  write_contents(file, bytes);
}

}  // namespace experiments::explain_gemm
