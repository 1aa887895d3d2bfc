#pragma once
/// The file formats that tensors are read from. A new one is one file and one row of file_format.cpp.

#include <filesystem>
#include <string_view>
#include <vector>

#include "experiments/frame/tensor_files/stored_tensor.h"

namespace experiments::tensor_files {

struct FileFormat {
  std::string_view extension;  ///< with its dot; empty for raw files, which have any
  bool holds_several;          ///< tensors, which have names of their own
  Contents (*parse)(Bytes bytes, const std::filesystem::path& file, const RawLayout& raw);
};

/// The format of a file with that name; raw where no other claims its extension.
const FileFormat& file_format_of(const std::filesystem::path& file);

/// Whether a folder's file of that name is read as one of its tensors' files.
bool has_known_extension(const std::filesystem::path& file);

}  // namespace experiments::tensor_files
