#pragma once
/// A tensor as it lies in a file: what it is and where, nothing read yet.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/frame/tensor_files/element_type.h"

namespace experiments::tensor_files {

using Bytes = std::span<const std::byte>;
using Shape = std::vector<std::uint64_t>;

enum class Packing { none, deflate };

struct StoredTensor {
  std::string name;  ///< one printable line
  Shape shape = {};  ///< empty for a single element
  const ElementType* type = nullptr;
  std::uint64_t elements = 0;
  Bytes data = {};  ///< as the file holds it, packed or not; valid as long as the file is mapped
  Packing packing = Packing::none;
  std::uint64_t skipped = 0;   ///< unpacked bytes before the first element
  bool columns_first = false;  ///< Fortran order: the first index runs fastest
  bool big_endian = false;
  bool byte_each = false;  ///< elements of fewer than 8 bits have a byte each, which reading packs
  bool is_codes = false;   ///< integers in the file, which the reader was told are codes of the type
  bool is_mapped = true;   ///< false: `data` is memory of somebody who keeps it, and no file's pages
  std::filesystem::path file;
  std::uint64_t offset = 0;  ///< of `data` in the file

  bool is_floating_point() const { return !type->format.empty(); }
  /// Bytes of the elements as they are read.
  std::uint64_t bytes() const { return elements / 8 * type->bits + (elements % 8 * type->bits + 7) / 8; }
  /// Bytes of the elements in the file, inflated.
  std::uint64_t stored_bytes() const { return byte_each ? elements : bytes(); }
  /// "tensor 'w' in file 'FILE'", for errors.
  std::string place() const;
};

/// What a parser finds in a file.
struct Contents {
  std::vector<StoredTensor> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;  ///< of safetensors
};

/// How files without a header are to be read, and integers that are codes.
struct RawLayout {
  const ElementType* type = nullptr;  ///< of integers of as many bits, at most 16, too; none: no raw files
  std::optional<Shape> shape = {};    ///< without one: a vector as long as the file
};

/// "(2, 3)", as NumPy writes it.
std::string text_of(const Shape& shape);

/// The product of at most 64 sizes, less than 2^60; else throws std::runtime_error, "PLACE has ...".
std::uint64_t element_count(const Shape& shape, std::string_view place);

/// Throws std::runtime_error "file 'FILE' ..." with the problem.
[[noreturn]] void refuse(const std::filesystem::path& file, std::string_view problem);

}  // namespace experiments::tensor_files
