#include "experiments/frame/tensor_files/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "experiments/frame/json.h"
#include "experiments/frame/printable.h"
#include "experiments/frame/tensor_files/safetensors_layout.h"

namespace experiments::tensor_files {
namespace {

namespace fs = std::filesystem;

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

}  // namespace experiments::tensor_files
