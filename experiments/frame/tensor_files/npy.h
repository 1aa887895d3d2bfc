#pragma once
/// NumPy's .npy files (NumPy Enhancement Proposal 1; versions 1.0 to 3.0).

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "experiments/frame/tensor_files/stored_tensor.h"

namespace experiments::tensor_files {

/// The header of a .npy file.
struct NpyHeader {
  Shape shape = {};
  const ElementType* type = nullptr;
  bool columns_first = false;
  bool big_endian = false;
  std::uint64_t bytes = 0;  ///< of the header, so that the elements begin here
};

/// Reads it through `read`, which gives the next so many bytes, or fewer at the end. A type of one or two bytes
/// ('V1', 'f1', 'V2'), as ml_dtypes' arrays have it, is what `raw` says; elements of fewer than 8 bits have a byte each. Throws
/// std::runtime_error, naming the file, what was found and what is allowed; objects (pickles) are refused.
NpyHeader read_npy_header(const std::function<std::string(std::size_t)>& read,
                          const std::filesystem::path& file, const RawLayout& raw);

/// One tensor, named after the file.
Contents parse_npy(Bytes bytes, const std::filesystem::path& file, const RawLayout& raw);

/// The header of a C-ordered little-endian array, version 1.0; the elements follow it.
std::string npy_header(const ElementType& type, const Shape& shape);

}  // namespace experiments::tensor_files
