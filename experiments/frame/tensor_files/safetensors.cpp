#include "experiments/frame/tensor_files/safetensors.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>

#include "experiments/frame/files.h"
#include "experiments/frame/json.h"
#include "experiments/frame/printable.h"

namespace experiments::tensor_files {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t length_size = 8, alignment = 8;
constexpr std::uint64_t longest_header = 100'000'000;  // as the reference implementation has it
constexpr const char* metadata_key = "__metadata__";

/// The header as JSON, and how many bytes it and its length take.
std::pair<Json, std::uint64_t> header_of(Bytes bytes, const fs::path& file) {
  if (bytes.size() < length_size)
    refuse(file, fmt::format("is no safetensors file: it has {} bytes, at least 8 are needed", bytes.size()));
  std::uint64_t length = 0;
  for (std::uint64_t i = length_size; i-- > 0;) length = length << 8 | static_cast<std::uint8_t>(bytes[i]);
  if (length > longest_header || length > bytes.size() - length_size)
    refuse(
        file,
        fmt::format(
            "is no safetensors file, or is cut off: its header should have {} bytes, of which {} are there",
            length, bytes.size() - length_size));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + length_size, length);
  Json header = Json::from_text(text);
  if (!header.is_object()) refuse(file, "is no safetensors file: its header is no JSON object");
  return {std::move(header), length_size + length};
}

/// The tensor of an entry, without its bytes; where these begin and end behind the header.
struct Entry {
  StoredTensor tensor;
  std::uint64_t begin, end;
};

Entry entry_of(const std::string& name, const Json& json, const fs::path& file) {
  Entry entry{.tensor = {.name = one_line(name), .file = file}, .begin = 0, .end = 0};
  const std::string place = entry.tensor.place();
  const std::string& dtype = json.at("dtype").string();
  entry.tensor.type = type_of_safetensors(dtype);
  if (entry.tensor.type == nullptr)
    throw std::runtime_error(fmt::format("{} has the unknown dtype '{}'", place, one_line(dtype)));
  for (const Json& size : json.at("shape").elements()) entry.tensor.shape.push_back(size.unsigned_integer());
  entry.tensor.elements = element_count(entry.tensor.shape, place);
  const Json& offsets = json.at("data_offsets");
  entry.begin = offsets.at(0).unsigned_integer();
  entry.end = offsets.at(1).unsigned_integer();
  if (entry.tensor.elements * static_cast<std::uint64_t>(entry.tensor.type->bits) % 8 != 0)
    throw std::runtime_error(fmt::format("{} has {} elements of {} bits, which fill no whole bytes", place,
                                         entry.tensor.elements, entry.tensor.type->bits));
  if (entry.begin > entry.end || entry.end - entry.begin != entry.tensor.bytes())
    throw std::runtime_error(
        fmt::format("{} has the data_offsets [{}, {}] where its shape {} and {} want {} bytes", place,
                    entry.begin, entry.end, text_of(entry.tensor.shape), dtype, entry.tensor.bytes()));
  return entry;
}

void require_apart(const std::vector<Entry>& entries) {
  const Entry* before = nullptr;
  for (const Entry& entry : entries) {
    if (entry.begin == entry.end) continue;
    if (before != nullptr && entry.begin < before->end)
      throw std::runtime_error(
          fmt::format("{} overlaps tensor '{}'", entry.tensor.place(), before->tensor.name));
    before = &entry;
  }
}

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

Contents parse_safetensors(Bytes bytes, const fs::path& file, const RawLayout&) {
  const auto [header, data_offset] = header_of(bytes, file);
  const Bytes data = bytes.subspan(data_offset);
  std::vector<Entry> entries;
  Contents contents;
  for (const auto& [name, json] : header.members()) {
    try {
      if (name == metadata_key) {
        for (const auto& [key, text] : json.members()) contents.metadata.emplace_back(key, text.string());
      } else {
        entries.push_back(entry_of(name, json, file));
      }
    } catch (const JsonError& error) {
      refuse(file, fmt::format("has a bad header at '{}': {}", one_line(name), one_line(error.what())));
    }
  }
  std::ranges::stable_sort(entries, {}, &Entry::begin);
  require_apart(entries);
  for (Entry& entry : entries) {
    if (entry.end > data.size())
      throw std::runtime_error(
          fmt::format("{} should end at byte {} of its data, of which {} are there: the file is cut off",
                      entry.tensor.place(), entry.end, data.size()));
    entry.tensor.data = data.subspan(entry.begin, entry.end - entry.begin);
    entry.tensor.offset = data_offset + entry.begin;
    contents.tensors.push_back(std::move(entry.tensor));
  }
  return contents;
}

std::vector<fs::path> shards_of(const fs::path& index) {
  const Json json = Json::from_text(read_file(index, longest_header));
  const Json* const map = json.find("weight_map");
  if (map == nullptr || !map->is_object())
    refuse(index, "is no safetensors index: it has no object 'weight_map'");
  std::set<std::string> names;
  for (const auto& [tensor, shard] : map->members()) {
    const std::string name = shard.is_string() ? shard.string() : "";
    if (name.empty() || fs::path(name).filename() != name)
      refuse(index, fmt::format("puts tensor '{}' into '{}'; a file beside the index is needed",
                                one_line(tensor), one_line(name)));
    names.insert(name);
  }
  std::vector<fs::path> files;
  for (const std::string& name : names) files.push_back(index.parent_path() / name);
  return files;
}

void write_safetensors(const fs::path& file, const std::vector<TensorToWrite>& tensors,
                       const std::vector<std::pair<std::string, std::string>>& metadata) {
  fs::path temporary = file;
  temporary += fmt::format(".partial-{}", ::getpid());
  const std::string header = header_text(tensors, metadata);
  errno = 0;
  std::ofstream stream(temporary, std::ios::binary);
  for (std::uint64_t i = 0; i < length_size; ++i) stream.put(static_cast<char>(header.size() >> 8 * i));
  stream << header;
  for (const TensorToWrite& tensor : tensors)
    stream.write(reinterpret_cast<const char*>(tensor.data.data()),
                 static_cast<std::streamsize>(tensor.data.size()));
  stream.close();
  std::error_code failure;
  const int problem = stream ? 0 : errno;
  if (problem == 0 && stream) fs::rename(temporary, file, failure);
  if (stream && !failure) return;
  std::error_code ignored;
  fs::remove(temporary, ignored);
  throw_not_written(file, failure ? failure.value() : problem);
}

}  // namespace experiments::tensor_files
