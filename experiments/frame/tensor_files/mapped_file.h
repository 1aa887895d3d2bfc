#pragma once
/// A file's bytes without a copy.

#include <filesystem>

#include "experiments/frame/tensor_files/stored_tensor.h"

namespace experiments::tensor_files {

/// A regular file mapped for reading. A file that another process makes shorter meanwhile ends this one (SIGBUS), as
/// with every mapping.
class MappedFile {
 public:
  /// Throws std::runtime_error "file 'FILE' cannot be read (...)".
  explicit MappedFile(const std::filesystem::path& file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  Bytes bytes() const { return bytes_; }

 private:
  std::filesystem::path path_;
  Bytes bytes_;
};

/// Gives the pages within this part of a mapping back, so that a file larger than memory leaves nothing behind.
void give_back(Bytes part);

}  // namespace experiments::tensor_files
