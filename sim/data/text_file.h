#pragma once

#include <cstddef>
#include <filesystem>

#include "sim/data/dataset.h"

namespace sim {

/// The bytes of a file as a text in windows of `context` tokens; a directory stands for the one file in it
/// whose name ends in .txt. The data are named after the file, without its directory.
/// Throws std::runtime_error, naming the path, when there is no such file, when it cannot be read or when it
/// is too short or too long (see TextDataset); std::invalid_argument for a context of 0.
TextDataset read_text(const std::filesystem::path& path, std::size_t context);

}  // namespace sim
