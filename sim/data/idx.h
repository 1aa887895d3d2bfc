#pragma once
/// IDX files, the format of MNIST (https://yann.lecun.com/exdb/mnist/), plain or compressed with gzip.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "sim/data/dataset.h"

namespace sim {

/// The contents of an IDX file of unsigned bytes.
struct IdxFile {
  std::vector<std::uint32_t> dimensions;
  std::vector<std::uint8_t> values;  ///< the last dimension varies fastest
};

/// Reads one IDX file, which must hold unsigned bytes in `dimensions` dimensions (1 for labels, 3 for
/// images), each of at least 1. Memory grows with what the file really holds, not with what its header
/// claims. Throws std::runtime_error, naming the file, when it is missing, no regular file, unreadable, truncated
/// or damaged (also within its compressed data, see gzip_file.h), longer than its header says, or not such a file.
IdxFile read_idx(const std::filesystem::path& path, std::size_t dimensions);

/// The four files of MNIST and its drop-in replacements: train-images-idx3-ubyte, train-labels-idx1-ubyte and
/// the same with t10k for the test set; each may end in .gz, and the hyphen before idx may be a dot. A label is
/// any byte; classes = the largest label + 1, at least 2. Throws std::runtime_error, naming directory or
/// file, when a file is missing or bad (see read_idx), when the counts of images and labels differ, or the two
/// sets' images differ in size.
ImageDataset read_idx_directory(const std::filesystem::path& directory);

}  // namespace sim
