#include "experiments/frame/tensor_files/stored_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

namespace experiments::tensor_files {

std::string StoredTensor::place() const {
  return fmt::format("tensor '{}' in file '{}'", name, file.string());
}

std::string text_of(const Shape& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

std::uint64_t element_count(const Shape& shape, std::string_view place) {
  constexpr std::uint64_t too_many = std::uint64_t{1} << 60;
  constexpr std::size_t most_dimensions = 64;  // of NumPy and PyTorch
  if (shape.size() > most_dimensions)
    throw std::runtime_error(
        fmt::format("{} has {} dimensions; at most {} are allowed", place, shape.size(), most_dimensions));
  std::uint64_t count = 1;
  for (const std::uint64_t size : shape) {
    if (size == 0) return 0;
  }
  for (const std::uint64_t size : shape) {
    if (size > (too_many - 1) / count)
      throw std::runtime_error(
          fmt::format("{} has the shape {}; fewer than 2^60 elements are allowed", place, text_of(shape)));
    count *= size;
  }
  return count;
}

void refuse(const std::filesystem::path& file, std::string_view problem) {
  throw std::runtime_error(fmt::format("file '{}' {}", file.string(), problem));
}

}  // namespace experiments::tensor_files
