#pragma once
/// Deflated bytes (RFC 1951), unpacked a piece at a time.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "experiments/frame/tensor_files/stored_tensor.h"

namespace experiments::tensor_files {

class Inflater {
 public:
  /// Errors name the file.
  Inflater(Bytes packed, std::filesystem::path file);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Fills `bytes` as far as there are any; how many. Throws std::runtime_error where the packed bytes are damaged.
  std::size_t read(std::span<std::byte> bytes);

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
  Bytes packed_;
  std::filesystem::path file_;
};

}  // namespace experiments::tensor_files
