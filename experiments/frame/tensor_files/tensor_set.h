#pragma once
/// The tensors that a user names by files and folders.

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "experiments/frame/tensor_files/mapped_file.h"
#include "experiments/frame/tensor_files/stored_tensor.h"

namespace experiments::tensor_files {

/// Floating-point tensors of files, of folders with these below them, and of sharded safetensors by their index.json.
///
/// A tensor has the name that its file gives it; one of a .npy or raw file is called as the file. Tensors of a folder begin
/// with the path within it, those of several paths with the path's own name (all of it where two would be the same);
/// shards of one index share its names.
class TensorSet {
 public:
  /// Throws std::runtime_error, naming the file, where one cannot be read, or a folder holds none.
  explicit TensorSet(const std::vector<std::string>& paths, const RawLayout& raw = {});

  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  /// The tensors whose elements are no floating-point numbers.
  const std::vector<StoredTensor>& passed_over() const { return passed_over_; }
  /// The metadata of all safetensors files, in order.
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }

  /// Keeps the tensors in whose names the text is found, as it stands; where it stands in none, as a regular expression
  /// (ECMAScript). Throws std::invalid_argument where it is none, or finds nothing.
  void select(const std::string& text);

  /// Whether the files hold one tensor alone, of numbers or not, whatever is selected.
  bool holds_one() const { return tensors_of_files_ == 1; }

  /// Whether the file was read, whatever of its tensors is selected.
  bool has_read(const std::filesystem::path& file) const;

  /// Sum of the tensors' bytes.
  std::uint64_t bytes() const;

 private:
  /// The names that the tensors have within the file.
  std::set<std::string> read_file(const std::filesystem::path& file, const std::string& prefix,
                                  const RawLayout& raw);
  void read_folder(const std::filesystem::path& folder, const std::string& prefix, const RawLayout& raw);
  void read_path(const std::filesystem::path& path, const std::string& prefix, const RawLayout& raw);

  std::vector<std::unique_ptr<MappedFile>> files_;
  std::vector<StoredTensor> tensors_;
  std::vector<StoredTensor> passed_over_;
  std::size_t tensors_of_files_ = 0;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

/// The one floating-point tensor that "FILE" holds, or "FILE:NAME" names.
class NamedTensor {
 public:
  /// Throws std::runtime_error, with the names that there are.
  explicit NamedTensor(const std::string& place, const RawLayout& raw = {});

  const StoredTensor& tensor() const { return tensor_; }

 private:
  TensorSet set_;
  StoredTensor tensor_;
};

}  // namespace experiments::tensor_files
