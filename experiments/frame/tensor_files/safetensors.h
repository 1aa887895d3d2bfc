#pragma once
/// Safetensors files: eight bytes of length, a JSON header, the tensors' bytes (huggingface/safetensors, "Format").

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "experiments/frame/tensor_files/stored_tensor.h"

namespace experiments::tensor_files {

/// All tensors in the order of their bytes, and the texts under __metadata__. Throws std::runtime_error, naming the file
/// and the tensor, where a length, an offset or the header does not fit the file, or two tensors overlap.
Contents parse_safetensors(Bytes bytes, const std::filesystem::path& file, const RawLayout& raw);

/// A file of an index, and the tensors that this puts into it, by names of one printable line.
struct Shard {
  std::filesystem::path file;
  std::vector<std::string> tensors;
};

/// The files that a *.safetensors.index.json distributes its tensors over, in the order of their names. Throws
/// std::runtime_error where it is no such index, or names files outside its directory.
std::vector<Shard> shards_of(const std::filesystem::path& index);

/// Throws std::runtime_error, naming the index, where the shard's file does not hold one of those.
void require_tensors(const std::filesystem::path& index, const Shard& shard,
                     const std::set<std::string>& held);

/// A tensor to be written; `data` are its little-endian elements in C order, `type` one that safetensors names.
struct TensorToWrite {
  std::string name;
  const ElementType* type;
  Shape shape;
  Bytes data;
};

/// Writes all under a temporary name, then renames. The first tensor begins at a multiple of eight bytes. Throws
/// std::runtime_error, naming the file.
void write_safetensors(const std::filesystem::path& file, const std::vector<TensorToWrite>& tensors,
                       const std::vector<std::pair<std::string, std::string>>& metadata = {});

}  // namespace experiments::tensor_files
