#include "experiments/frame/tensor_files/tensor_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <regex>
#include <set>
#include <stdexcept>
#include <string_view>

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
  return one_line((fs::is_directory(name) ? name.filename() : name.stem()).string());
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

/// What stands before the last colon, unless the whole is a file.
std::string file_of(const std::string& place) {
  return fs::exists(place) ? place : place.substr(0, place.rfind(':'));
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
  const std::vector<std::string> prefix = prefixes(paths);
  for (std::size_t i = 0; i < paths.size(); ++i) read_path(paths[i], prefix[i], raw);
}

void TensorSet::read_path(const fs::path& path, const std::string& prefix, const RawLayout& raw) {
  if (fs::is_directory(path)) {
    read_folder(path, prefix, raw);
  } else if (is_index(path)) {
    for (const fs::path& shard : shards_of(path)) read_file(shard, prefix, raw);
  } else {
    const bool has_own_names = file_format_of(path).holds_several;
    read_file(path, has_own_names ? prefix : prefix.empty() ? own_name(path.string()) : prefix, raw);
  }
}

void TensorSet::read_folder(const fs::path& folder, const std::string& prefix, const RawLayout& raw) {
  std::vector<fs::path> files, shards;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    if (is_index(entry.path())) std::ranges::copy(shards_of(entry.path()), std::back_inserter(shards));
    if (has_known_extension(entry.path())) files.push_back(entry.path());
  }
  if (files.empty())
    throw std::runtime_error(
        fmt::format("folder '{}' has no .npy, .npz or .safetensors file", folder.string()));
  std::ranges::for_each(shards, require_regular);  // one that is missing is no file of the folder
  // Numbers in names count as numbers: step_2 comes before step_10.
  std::ranges::sort(files, [](const fs::path& a, const fs::path& b) {
    return std::ranges::lexicographical_compare(
        a, b, [](const fs::path& x, const fs::path& y) { return strverscmp(x.c_str(), y.c_str()) < 0; });
  });
  for (const fs::path& file : files) {
    fs::path place = file.lexically_relative(folder);
    place = std::ranges::count(shards, file) ? place.parent_path() : place.replace_extension();
    read_file(file, joined(prefix, one_line(place.string())), raw);
  }
}

void TensorSet::read_file(const fs::path& file, const std::string& prefix, const RawLayout& raw) {
  const FileFormat& format = file_format_of(file);
  files_.push_back(std::make_unique<MappedFile>(file));
  Contents contents = format.parse(files_.back()->bytes(), file, raw);
  for (StoredTensor& tensor : contents.tensors) {
    tensor.name = format.holds_several ? joined(prefix, tensor.name) : prefix;
    tensor.is_codes = raw.type != nullptr && tensor.type->bits == raw.type->bits && can_be_codes(tensor);
    if (tensor.is_codes) tensor.type = raw.type;
    (tensor.is_floating_point() ? tensors_ : passed_over_).push_back(std::move(tensor));
  }
  std::ranges::move(contents.metadata, std::back_inserter(metadata_));
}

void TensorSet::select(const std::string& expression) {
  try {
    const std::regex regex(expression);
    const auto is_other = [&](const StoredTensor& tensor) { return !std::regex_search(tensor.name, regex); };
    const bool finds_some = !std::ranges::all_of(tensors_, is_other);
    if (!finds_some)
      throw std::invalid_argument(
          fmt::format("'{}' is found in none of the {} names of tensors{}", expression, tensors_.size(),
                      tensors_.empty() ? "" : fmt::format(", such as '{}'", tensors_.front().name)));
    std::erase_if(tensors_, is_other);
  } catch (const std::regex_error& error) {
    throw std::invalid_argument(fmt::format("'{}' is no regular expression ({})", expression, error.what()));
  }
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
