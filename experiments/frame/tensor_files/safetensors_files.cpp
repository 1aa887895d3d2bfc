/// Safetensors on disk: shards of an index, and files to be written.

#include <fmt/format.h>

#include <map>
#include <ostream>
#include <set>
#include <stdexcept>
#include <utility>

#include "experiments/frame/files.h"
#include "experiments/frame/json.h"
#include "experiments/frame/printable.h"
#include "experiments/frame/tensor_files/safetensors.h"
#include "experiments/frame/tensor_files/safetensors_layout.h"
#include "experiments/frame/whole_file.h"

namespace experiments::tensor_files {
namespace {

namespace fs = std::filesystem;

std::string header_text(const std::vector<TensorToWrite>& tensors,
                        const std::vector<std::pair<std::string, std::string>>& metadata) {
  Json::Object members;
  if (!metadata.empty()) {
    Json::Object texts(metadata.begin(), metadata.end());
    members.emplace_back(metadata_key, Json::object(std::move(texts)));
  }
  std::uint64_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    Json::Array shape(tensor.shape.begin(), tensor.shape.end());
    const std::uint64_t end = offset + tensor.data.size();
    members.emplace_back(tensor.name, Json::object({{"dtype", tensor.type->safetensors},
                                                    {"shape", std::move(shape)},
                                                    {"data_offsets", Json::Array{offset, end}}}));
    offset = end;
  }
  std::string text = Json::object(std::move(members)).to_text();
  text.resize((text.size() + alignment - 1) / alignment * alignment, ' ');
  return text;
}

}  // namespace

std::vector<Shard> shards_of(const fs::path& index) {
  const Json json = Json::from_text(read_file(index, longest_header));
  const Json* const map = json.find("weight_map");
  if (map == nullptr || !map->is_object())
    refuse(index, "is no safetensors index: it has no object 'weight_map'");
  std::map<std::string, std::vector<std::string>> by_file;
  for (const auto& [tensor, shard] : map->members()) {
    const std::string name = shard.is_string() ? shard.string() : "";
    if (name.empty() || fs::path(name).filename() != name)
      refuse(index, fmt::format("puts tensor '{}' into '{}'; a file beside the index is needed",
                                one_line(tensor), one_line(name)));
    by_file[name].push_back(one_line(tensor));
  }
  std::vector<Shard> shards;
  for (auto& [name, tensors] : by_file) shards.push_back({index.parent_path() / name, std::move(tensors)});
  return shards;
}

void require_tensors(const fs::path& index, const Shard& shard, const std::set<std::string>& held) {
  for (const std::string& tensor : shard.tensors) {
    if (!held.contains(tensor))
      refuse(index, fmt::format("puts tensor '{}' into '{}', which does not hold it", tensor,
                                one_line(shard.file.filename().string())));
  }
}

void write_safetensors(const fs::path& file, const std::vector<TensorToWrite>& tensors,
                       const std::vector<std::pair<std::string, std::string>>& metadata) {
  const std::string header = header_text(tensors, metadata);
  WholeFile whole(file);
  std::ostream& stream = whole.stream();
  for (std::uint64_t i = 0; i < length_size; ++i) stream.put(static_cast<char>(header.size() >> 8 * i));
  stream << header;
  for (const TensorToWrite& tensor : tensors)
    stream.write(reinterpret_cast<const char*>(tensor.data.data()),
                 static_cast<std::streamsize>(tensor.data.size()));
  whole.publish();
}

}  // namespace experiments::tensor_files
