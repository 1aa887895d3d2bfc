#include "experiments/frame/tensor_files/tensor_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <regex>
#include <set>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "experiments/frame/files.h"
#include "experiments/frame/printable.h"
#include "experiments/frame/tensor_files/file_format.h"
#include "experiments/frame/tensor_files/safetensors.h"

namespace experiments::tensor_files {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view index_ending = ".safetensors.index.json";

bool is_index(const fs::path& file) {
  return file.filename().string().ends_with(index_ending);
}

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : name.empty() ? prefix : fmt::format("{}/{}", prefix, name);
}

/// A path's own name without slashes at its end and without the extension of a file.
std::string own_name(const std::string& path) {
  fs::path name = fs::path(path).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  return one_line((is_folder(name) ? name.filename() : name.stem()).string());
}

/// What the tensors of each path begin with.
std::vector<std::string> prefixes(const std::vector<std::string>& paths) {
  if (paths.size() == 1) return {""};
  std::vector<std::string> names;
  std::ranges::transform(paths, std::back_inserter(names), own_name);
  if (std::set(names.begin(), names.end()).size() == names.size()) return names;
  names.clear();
  std::ranges::transform(paths, std::back_inserter(names), one_line);
  return names;
}

/// What stands before a colon and is a file: the whole, or else the longest; names may hold colons. Before the last one where
/// none is.
std::string file_of(const std::string& place) {
  std::error_code error;
  for (std::size_t end = place.size(); end != std::string::npos && end > 0; end = place.rfind(':', end - 1)) {
    if (fs::exists(place.substr(0, end), error)) return place.substr(0, end);
  }
  return place.substr(0, place.rfind(':'));
}

/// Whether a folder's entry is a file to be read, by its name and kind. Throws std::runtime_error, naming it, where it has
/// such a name and cannot be read.
bool is_file_of_tensors(const fs::directory_entry& entry) {
  if (!is_index(entry.path()) && !has_known_extension(entry.path())) return false;
  std::error_code error;
  const fs::file_status status = entry.status(error);
  if (error) throw_not_read(entry.path(), error.message());
  return fs::is_regular_file(status);
}

/// The files of tensors and indices below the folder. Throws std::runtime_error, naming what cannot be read.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::path place = folder;
  for (auto entry = fs::recursive_directory_iterator(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    place = entry->path();
    if (is_file_of_tensors(*entry)) files.push_back(place);
  }
  if (error)
    throw std::runtime_error(fmt::format("folder '{}' cannot be read ({})", place.string(), error.message()));
  return files;
}

/// PyTorch and NumPy hand on formats that the other does not know as integers of their codes. Those of 32 and 64 bits both
/// know; integers that wide are labels and counters.
bool can_be_codes(const StoredTensor& tensor) {
  const bool is_integer =
      tensor.type->safetensors.starts_with('U') || tensor.type->safetensors.starts_with('I');
  return is_integer && tensor.type->bits <= 16;
}

}  // namespace

TensorSet::TensorSet(const std::vector<std::string>& paths, const RawLayout& raw) {
  std::set<fs::path> given;
  for (const std::string& path : paths) {
    std::error_code is_none;
    if (!given.insert(fs::weakly_canonical(path, is_none)).second)
      throw std::runtime_error(fmt::format("'{}' is given twice; allowed: each path once", path));
  }
  const std::vector<std::string> prefix = prefixes(paths);
  for (std::size_t i = 0; i < paths.size(); ++i) read_path(paths[i], prefix[i], raw);
}

void TensorSet::read_path(const fs::path& path, const std::string& prefix, const RawLayout& raw) {
  if (is_folder(path)) {
    read_folder(path, prefix, raw);
  } else if (is_index(path)) {
    for (const Shard& shard : shards_of(path))
      require_tensors(path, shard, read_file(shard.file, prefix, raw));
  } else {
    const bool has_own_names = file_format_of(path).holds_several;
    read_file(path, has_own_names ? prefix : prefix.empty() ? own_name(path.string()) : prefix, raw);
  }
}

void TensorSet::read_folder(const fs::path& folder, const std::string& prefix, const RawLayout& raw) {
  std::vector<fs::path> files = files_below(folder);
  const auto indices = std::ranges::partition(files, std::not_fn(is_index));
  std::vector<std::pair<fs::path, Shard>> shards;  // with their index
  for (const fs::path& index : indices) {
    for (Shard& shard : shards_of(index)) shards.emplace_back(index, std::move(shard));
  }
  files.erase(indices.begin(), indices.end());
  if (files.empty())
    throw std::runtime_error(
        fmt::format("folder '{}' has no .npy, .npz or .safetensors file", folder.string()));
  for (const auto& [index, shard] : shards) require_regular(shard.file);  // else it is no file of the folder
  // Numbers in names count as numbers: step_2 comes before step_10.
  std::ranges::sort(files, [](const fs::path& a, const fs::path& b) {
    return std::ranges::lexicographical_compare(
        a, b, [](const fs::path& x, const fs::path& y) { return strverscmp(x.c_str(), y.c_str()) < 0; });
  });
  std::map<fs::path, std::set<std::string>> held;
  const auto is_shard = [&](const fs::path& file) {
    return std::ranges::any_of(shards, [&](const auto& each) { return each.second.file == file; });
  };
  for (const fs::path& file : files) {
    fs::path place = file.lexically_relative(folder);
    place = is_shard(file) ? place.parent_path() : place.replace_extension();
    held[file] = read_file(file, joined(prefix, one_line(place.string())), raw);
  }
  for (const auto& [index, shard] : shards) require_tensors(index, shard, held[shard.file]);
}

std::set<std::string> TensorSet::read_file(const fs::path& file, const std::string& prefix,
                                           const RawLayout& raw) {
  const FileFormat& format = file_format_of(file);
  files_.push_back(std::make_unique<MappedFile>(file));
  Contents contents = format.parse(files_.back()->bytes(), file, raw);
  std::set<std::string> names;
  for (StoredTensor& tensor : contents.tensors) {
    names.insert(tensor.name);
    tensor.name = format.holds_several ? joined(prefix, tensor.name) : prefix;
    tensor.is_codes = raw.type != nullptr && tensor.type->bits == raw.type->bits && can_be_codes(tensor);
    if (tensor.is_codes) tensor.type = raw.type;
    (tensor.is_floating_point() ? tensors_ : passed_over_).push_back(std::move(tensor));
  }
  tensors_of_files_ += contents.tensors.size();
  std::ranges::move(contents.metadata, std::back_inserter(metadata_));
  return names;
}

void TensorSet::select(const std::string& text) {
  const auto has_text = [&](const StoredTensor& tensor) {
    return tensor.name.find(text) != std::string::npos;
  };
  std::function<bool(const StoredTensor&)> is_selected = has_text;
  if (std::ranges::none_of(tensors_, has_text)) {
    try {
      is_selected = [regex = std::regex(text)](const StoredTensor& tensor) {
        return std::regex_search(tensor.name, regex);
      };
    } catch (const std::regex_error& error) {
      throw std::invalid_argument(
          fmt::format("'{}' is in no name of a tensor, and no regular expression ({})", text, error.what()));
    }
  }
  if (std::ranges::none_of(tensors_, is_selected))
    throw std::invalid_argument(
        fmt::format("'{}' is found in none of the {} names of tensors{}", text, tensors_.size(),
                    tensors_.empty() ? "" : fmt::format(", such as '{}'", tensors_.front().name)));
  std::erase_if(tensors_, std::not_fn(is_selected));
  std::erase_if(passed_over_, std::not_fn(is_selected));
}

bool TensorSet::has_read(const fs::path& file) const {
  std::error_code is_none;
  return std::ranges::any_of(files_,
                             [&](const auto& read) { return fs::equivalent(read->path(), file, is_none); });
}

std::uint64_t TensorSet::bytes() const {
  return std::accumulate(tensors_.begin(), tensors_.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const StoredTensor& tensor) { return sum + tensor.bytes(); });
}

NamedTensor::NamedTensor(const std::string& place, const RawLayout& raw) : set_({file_of(place)}, raw) {
  const std::string file = file_of(place);
  const std::vector<StoredTensor>& tensors = set_.tensors();
  if (tensors.empty())
    throw std::runtime_error(fmt::format(
        "file '{}' holds no floating-point tensor{}", file,
        std::ranges::any_of(set_.passed_over(), can_be_codes)
            ? ", but integers: codes as wide as a format are read with --dtype, such as --dtype bfloat16"
            : ""));
  const bool names_one = file.size() < place.size();
  const auto found = names_one
                         ? std::ranges::find(tensors, place.substr(file.size() + 1), &StoredTensor::name)
                         : tensors.begin();
  if (found == tensors.end() || (!names_one && tensors.size() > 1))
    throw std::runtime_error(
        fmt::format("'{0}' names none of the {1} tensors of the file; say '{2}:NAME', as in '{2}:{3}'", place,
                    tensors.size(), file, tensors.front().name));
  tensor_ = *found;
}

}  // namespace experiments::tensor_files
