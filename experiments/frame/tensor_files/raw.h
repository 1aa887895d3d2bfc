#pragma once
/// Files that are nothing but the elements of one tensor.

#include <filesystem>

#include "experiments/frame/tensor_files/stored_tensor.h"

namespace experiments::tensor_files {

/// One little-endian tensor in C order, named after the file. Throws std::runtime_error where `raw` names no type, or its
/// shape and type do not fit the file's size.
Contents parse_raw(Bytes bytes, const std::filesystem::path& file, const RawLayout& raw);

}  // namespace experiments::tensor_files
