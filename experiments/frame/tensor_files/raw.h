#pragma once
/// Files that are nothing but the elements of one tensor.

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "experiments/frame/tensor_files/stored_tensor.h"

namespace experiments::tensor_files {

/// One little-endian tensor in C order, named after the file. Throws std::runtime_error where `raw` names no type, or its
/// shape and type do not fit the file's size.
Contents parse_raw(Bytes bytes, const std::filesystem::path& file, const RawLayout& raw);

/// What a user calls the parts of a RawLayout; of a command, unless others are given.
struct RawLayoutNames {
  std::string_view before = "";  ///< each refusal
  std::string_view type = "--dtype";
  std::string_view shape = "--shape";
  std::string_view none = "none";  ///< what leaves out the type
};

/// The layout of raw files of a format, none if empty, and a shape. Throws std::invalid_argument, naming what is wrong, where
/// no file holds the format, or there is a shape alone.
RawLayout raw_layout(std::string_view format, std::optional<Shape> shape, const RawLayoutNames& names = {});

/// Refuses the type of a layout, and its shape, that no tensor was read by: their files say themselves what they hold. Throws
/// std::invalid_argument, naming it.
void require_use_of(const RawLayout& raw, std::span<const StoredTensor> tensors,
                    const RawLayoutNames& names = {});

}  // namespace experiments::tensor_files
