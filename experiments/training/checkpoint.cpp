#include "experiments/training/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "experiments/frame/crc32.h"
#include "experiments/frame/files.h"
#include "experiments/frame/json.h"

namespace experiments {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view magic = "halflab\n";
constexpr std::uint32_t format_version = 3;
constexpr std::size_t checksum_size = sizeof(std::uint32_t);
constexpr std::size_t header_size = magic.size() + sizeof(std::uint32_t) + sizeof(std::uint64_t);
constexpr std::string_view file_prefix = "checkpoint-";
constexpr std::string_view unfinished_file = ".checkpoint.partial";

[[noreturn]] void throw_about_checkpoint(const fs::path& file, std::string_view what) {
  throw std::runtime_error(fmt::format("checkpoint '{}' {}", file.string(), what));
}

Json bits_of(const names::NamedValues& values) {
  Json::Array list;
  for (const auto& [name, value] : values)
    list.push_back(Json::Array{name, std::bit_cast<std::uint64_t>(value)});
  return list;
}

names::NamedValues values_of(const Json& list) {
  names::NamedValues values;
  for (const Json& entry : list.elements())
    values.emplace_back(entry.at(0).string(), std::bit_cast<double>(entry.at(1).unsigned_integer()));
  return values;
}

Json pairs_of(const std::vector<std::pair<std::string, std::string>>& texts) {
  Json::Array list;
  for (const auto& [name, text] : texts) list.push_back(Json::Array{name, text});
  return list;
}

std::vector<std::pair<std::string, std::string>> texts_of(const Json& list) {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const Json& entry : list.elements()) texts.emplace_back(entry.at(0).string(), entry.at(1).string());
  return texts;
}

Json content_of(const Checkpoint& checkpoint) {
  Json::Array files, arrays, loss_scalers;
  for (const FileMark& mark : checkpoint.files)
    files.push_back(Json::Array{mark.name, mark.bytes, mark.checksum});
  for (const auto& [name, bytes] : checkpoint.trainer.arrays) arrays.push_back(Json::Array{name, bytes});
  for (const names::NamedValues& state : checkpoint.trainer.loss_scalers)
    loss_scalers.push_back(bits_of(state));
  return Json::object({{"arrays", std::move(arrays)},
                       {"files", std::move(files)},
                       {"layer_scaler", bits_of(checkpoint.trainer.layer_scaler)},
                       {"loss_scalers", std::move(loss_scalers)},
                       {"notes", pairs_of(checkpoint.notes)},
                       {"run", pairs_of(checkpoint.run)},
                       {"steps_applied", checkpoint.trainer.steps_applied},
                       {"steps_done", checkpoint.trainer.steps_done},
                       {"tensor_scaler", bits_of(checkpoint.trainer.tensor_scaler)},
                       {"totals", bits_of(checkpoint.totals)}});
}

/// Throws JsonError where an entry is missing or of another kind.
Checkpoint checkpoint_of(const Json& content) {
  Checkpoint checkpoint{
      .run = texts_of(content.at("run")),
      .trainer = {.steps_done = content.at("steps_done").unsigned_integer(),
                  .steps_applied = content.at("steps_applied").unsigned_integer(),
                  .layer_scaler = values_of(content.at("layer_scaler")),
                  .tensor_scaler = values_of(content.at("tensor_scaler"))},
      .totals = values_of(content.at("totals")),
      .notes = texts_of(content.at("notes")),
  };
  for (const Json& mark : content.at("files").elements())
    checkpoint.files.push_back({.name = mark.at(0).string(),
                                .bytes = mark.at(1).unsigned_integer(),
                                .checksum = static_cast<std::uint32_t>(mark.at(2).unsigned_integer())});
  for (const Json& state : content.at("loss_scalers").elements())
    checkpoint.trainer.loss_scalers.push_back(values_of(state));
  for (const Json& array : content.at("arrays").elements())
    checkpoint.trainer.arrays.push_back({array.at(0).string(), array.at(1).bytes()});
  return checkpoint;
}

template <class Number>
void append(std::string& bytes, Number number) {
  const auto raw = std::bit_cast<std::array<char, sizeof(Number)>>(number);
  bytes.append(raw.begin(), raw.end());
}

template <class Number>
Number number_at(std::string_view bytes, std::size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

std::uint32_t checksum_of(std::string_view bytes) {
  return crc32(std::as_bytes(std::span(bytes)));
}

/// The steps done that a file's name tells; none for another file.
std::optional<std::uint64_t> steps_in_name(const fs::path& file) {
  const std::string name = file.filename().string();
  if (!name.starts_with(file_prefix)) return std::nullopt;
  std::uint64_t steps = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + file_prefix.size(), end, steps);
  return error == std::errc() && stop == end ? std::optional(steps) : std::nullopt;
}

const std::string* value_in(const RunIdentity& run, std::string_view name) {
  const auto entry = std::ranges::find(run, name, &RunIdentity::value_type::first);
  return entry == run.end() ? nullptr : &entry->second;
}

std::string ranks_text(const RunIdentity& run) {
  const std::string ranks = ranks_of(run);
  return fmt::format("{} rank{}", ranks, ranks == "1" ? "" : "s");
}

/// Without the number of ranks, and without what one rank has none of.
RunIdentity without_ranks(RunIdentity run, bool is_one_of_them_alone) {
  std::erase_if(run, [&](const auto& entry) {
    const bool is_of_several =
        std::ranges::find(entries_of_several_ranks, entry.first) != entries_of_several_ranks.end();
    return entry.first == ranks_entry || (is_one_of_them_alone && is_of_several);
  });
  return run;
}

/// Throws where two runs differ first.
void require_same_run(const fs::path& file, const RunIdentity& saved, const RunIdentity& run,
                      bool with_other_ranks) {
  const bool has_other_ranks = ranks_of(saved) != ranks_of(run);
  const bool is_alone = has_other_ranks && (ranks_of(saved) == "1" || ranks_of(run) == "1");
  const auto difference = first_difference(without_ranks(saved, is_alone), without_ranks(run, is_alone));
  if (difference)
    throw std::invalid_argument(
        fmt::format("checkpoint '{}' is of a run with {} {}, and this one has {}; allowed: the same run, "
                    "another directory, or to remove the checkpoint",
                    file.string(), difference->name, difference->first, difference->second));
  if (has_other_ranks && !with_other_ranks)
    throw std::invalid_argument(
        fmt::format("checkpoint '{}' is of a run on {}, and this one has {}; allowed: as many, "
                    "--resume-with-other-ranks, another directory, or to remove the checkpoint",
                    file.string(), ranks_text(saved), ranks_text(run)));
}

void require_files(const fs::path& checkpoint, const std::vector<FileMark>& files) {
  for (const FileMark& expected : files) {
    const FileMark found = mark_of(checkpoint.parent_path() / expected.name, expected.bytes);
    if (found == expected) continue;
    throw_about_checkpoint(
        checkpoint, fmt::format("does not go with '{}' beside it, which was {}", expected.name,
                                found.bytes < expected.bytes ? fmt::format("cut off: it has {} bytes of {}",
                                                                           found.bytes, expected.bytes)
                                                             : "altered: its checksum is another"));
  }
}

/// The size first, so that no two sequences of arrays are the same bytes.
template <class Element>
std::uint32_t add_checksum(std::uint32_t sum, const std::vector<Element>& elements) {
  const std::array size{static_cast<std::uint64_t>(elements.size())};
  return crc32(std::as_bytes(std::span(elements)), crc32(std::as_bytes(std::span(size)), sum));
}

std::uint32_t add_checksum(std::uint32_t sum, const sim::Batch& batch) {
  sum = add_checksum(sum, batch.inputs);
  sum = add_checksum(sum, batch.tokens);
  sum = add_checksum(sum, batch.labels);
  for (const std::vector<sim::Box>& boxes : batch.boxes) sum = add_checksum(sum, boxes);
  return sum;
}

}  // namespace

std::uint32_t checksum_of(const sim::Dataset& dataset) {
  constexpr std::size_t chunk = 250;
  const std::vector<std::uint32_t> order = dataset.epoch_order(0, 0);
  std::uint32_t sum = 0;
  for (std::size_t first = 0; first < order.size(); first += chunk) {
    const std::size_t count = std::min(chunk, order.size() - first);
    sum = add_checksum(sum, dataset.training_batch(std::span(order).subspan(first, count)));
  }
  for (std::size_t first = 0; first < dataset.test_size(); first += chunk)
    sum = add_checksum(sum, dataset.test_batch(first, std::min(chunk, dataset.test_size() - first)));
  return sum;
}

std::optional<RunDifference> first_difference(const RunIdentity& first, const RunIdentity& second) {
  const auto text = [](const std::string* value) { return value ? fmt::format("'{}'", *value) : "none"; };
  for (const RunIdentity* const run : {&first, &second}) {
    for (const auto& [name, any] : *run) {
      const std::string a = text(value_in(first, name)), b = text(value_in(second, name));
      if (a != b) return RunDifference{name, a, b};
    }
  }
  return std::nullopt;
}

std::string ranks_of(const RunIdentity& run) {
  const std::string* const ranks = value_in(run, ranks_entry);
  return ranks ? *ranks : "1";
}

std::string bytes_of(const Checkpoint& checkpoint) {
  const std::string content = content_of(checkpoint).to_cbor();
  std::string bytes(magic);
  bytes.reserve(header_size + content.size() + checksum_size);
  append(bytes, format_version);
  append(bytes, static_cast<std::uint64_t>(content.size()));
  bytes += content;
  append(bytes, checksum_of(bytes));
  return bytes;
}

void write_checkpoint(const fs::path& file, const Checkpoint& checkpoint) {
  const std::string bytes = bytes_of(checkpoint);
  const fs::path directory = file.has_parent_path() ? file.parent_path() : ".";
  write_contents(directory / unfinished_file, bytes);
  synchronise(directory / unfinished_file);
  std::error_code error;
  fs::rename(directory / unfinished_file, file, error);
  if (error) throw_not_written(file, error.value());
  synchronise(directory);
}

Checkpoint read_checkpoint(const fs::path& file) {
  const std::optional<std::string> read = contents_of(file);
  if (!read) throw_about_checkpoint(file, "cannot be read");
  return checkpoint_from(*read, file);
}

Checkpoint checkpoint_from(const std::string& whole, const fs::path& file) {
  const std::string_view bytes = whole;
  if (bytes.size() < header_size + checksum_size || !bytes.starts_with(magic))
    throw_about_checkpoint(file, "is no checkpoint of halflab, or was cut off within its first bytes");
  const std::size_t end = bytes.size() - checksum_size;
  const auto content_size = number_at<std::uint64_t>(bytes, magic.size() + sizeof format_version);
  if (end - header_size != content_size) {
    throw_about_checkpoint(file, fmt::format("was cut off or altered: its content has {} bytes of {}",
                                             end - header_size, content_size));
  }
  if (checksum_of(bytes.substr(0, end)) != number_at<std::uint32_t>(bytes, end))
    throw_about_checkpoint(file, "was altered: its checksum is not that of its content");
  const auto version = number_at<std::uint32_t>(bytes, magic.size());
  if (version != format_version) {
    throw std::invalid_argument(
        fmt::format("checkpoint '{}' has version {} of the format; allowed: version {}", file.string(),
                    version, format_version));
  }
  try {
    return checkpoint_of(Json::from_cbor(bytes.substr(header_size, content_size)));
  } catch (const JsonError&) {
    throw_about_checkpoint(file, "has content that no checkpoint has");
  }
}

void CheckpointDirectory::write(const Checkpoint& checkpoint) const {
  write_checkpoint(directory_ / fmt::format("{}{}", file_prefix, checkpoint.trainer.steps_done), checkpoint);
  const std::vector<fs::path> present = files();
  for (std::size_t i = 2; i < present.size(); ++i) fs::remove(present[i]);
}

std::optional<Checkpoint> CheckpointDirectory::latest(const RunIdentity& run,
                                                      const std::function<void(const std::string&)>& warn,
                                                      bool with_other_ranks) const {
  std::vector<std::string> problems;
  for (const fs::path& file : files()) {
    try {
      Checkpoint checkpoint = read_checkpoint(file);
      require_same_run(file, checkpoint.run, run, with_other_ranks);
      require_files(file, checkpoint.files);
      for (const std::string& problem : problems)
        warn(fmt::format("{}; the run goes on from '{}'", problem, file.filename().string()));
      return checkpoint;
    } catch (const std::runtime_error& error) {
      problems.emplace_back(error.what());
    }
  }
  if (problems.empty()) return std::nullopt;
  throw std::runtime_error(fmt::format("{}; no other is left, remove {} to start anew", problems.front(),
                                       problems.size() == 1 ? "it" : "them"));
}

void CheckpointDirectory::clear() const {
  for (const fs::path& file : files()) fs::remove(file);
  fs::remove(directory_ / unfinished_file);
}

std::vector<fs::path> CheckpointDirectory::files() const {
  std::vector<std::pair<std::uint64_t, fs::path>> found;
  std::error_code no_directory;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_, no_directory)) {
    if (const auto steps = steps_in_name(entry.path())) found.emplace_back(*steps, entry.path());
  }
  std::ranges::sort(found, std::greater<>());
  std::vector<fs::path> files;
  for (auto& [steps, file] : found) files.push_back(std::move(file));
  return files;
}

}  // namespace experiments
