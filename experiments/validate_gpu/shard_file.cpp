#include "experiments/validate_gpu/shard_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "sim/build_information.h"
#include "sim/record.h"

namespace experiments::validate_gpu {
namespace {

constexpr std::size_t result_bytes = 16;

template <std::unsigned_integral Word>
void append_word(std::string& bytes, Word word) {
  for (std::size_t byte = 0; byte < sizeof(Word); ++byte)
    bytes.push_back(static_cast<char>(word >> 8 * byte & 0xFF));
}

template <std::unsigned_integral Word>
Word word_at(const std::string& bytes, std::size_t offset) {
  Word word = 0;
  for (std::size_t byte = 0; byte < sizeof(Word); ++byte)
    word |= static_cast<Word>(Word{static_cast<unsigned char>(bytes[offset + byte])} << 8 * byte);
  return word;
}

constexpr std::string_view kind = "halflab shards 1";

/// Where in `bytes` the binary part begins, and what stands before it.
struct Header {
  std::size_t end = 0;
  std::string version, revision;
  std::vector<ShardFile::Line> lines;
  std::vector<std::size_t> finished;  ///< shards of each row
};

Header parse_header(const std::string& bytes, const std::string& name) {
  if (!bytes.starts_with(std::string(kind) + '\n'))
    throw std::runtime_error(
        fmt::format("{} is no shard file of this version, which begins with '{}'", name, kind));
  const std::size_t end = bytes.find("\n\n");
  if (end == std::string::npos) throw std::runtime_error(name + ": the list of rows has no end");
  Header header{.end = end + 2, .version = {}, .revision = {}, .lines = {}, .finished = {}};
  std::istringstream text(bytes.substr(kind.size() + 1, end - kind.size()));
  std::string word;
  text >> word >> header.version >> word >> header.revision >> std::ws;
  for (std::string line; std::getline(text, line);) {
    std::istringstream fields(line);
    ShardFile::Line row{.row = {}, .shard_count = 0};
    std::size_t finished = 0;
    fields >> row.shard_count >> finished >> std::ws;
    std::getline(fields, row.row);
    header.lines.push_back(row);
    header.finished.push_back(finished);
  }
  return header;
}

/// `ours` is what this program would write.
void require_same(const Header& header, const Header& ours, const std::string& name, ShardFile::Use use) {
  if (header.version != ours.version) {
    throw std::runtime_error(
        fmt::format("{} is of version '{}' of Halflab; allowed: {}", name, header.version, ours.version));
  }
  if (use == ShardFile::Use::go_on && header.revision != ours.revision) {
    throw std::runtime_error(fmt::format("{} is of revision {}, this program of {}; --restart begins anew",
                                         name, header.revision, ours.revision));
  }
  if (header.lines == ours.lines) return;
  const auto [theirs, own] =
      std::mismatch(header.lines.begin(), header.lines.end(), ours.lines.begin(), ours.lines.end());
  throw std::runtime_error(fmt::format("{} is of other rows: it has '{}' where this program has '{}'", name,
                                       theirs == header.lines.end() ? "no more" : theirs->row,
                                       own == ours.lines.end() ? "no more" : own->row));
}

}  // namespace

ShardFile::ShardFile(std::vector<Line> lines) : lines_(std::move(lines)), finished_(lines_.size()) {}

ShardFile ShardFile::read(const std::filesystem::path& file, std::vector<Line> lines, Use use) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw std::runtime_error(file.string() + ": cannot be read");
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  ShardFile shards(std::move(lines));
  const Header header = parse_header(bytes, file.string());
  require_same(header, parse_header(shards.header(), "this program"), file.string(), use);
  const std::runtime_error damaged(file.string() + ": is damaged, its shards do not fit its list of rows");

  std::size_t offset = header.end;
  for (std::size_t row = 0; row < shards.lines_.size(); ++row) {
    if (header.finished[row] == 0) continue;
    const std::uint32_t shard_count = shards.lines_[row].shard_count;
    const std::size_t bitmap = offset, bitmap_bytes = (shard_count + 7) / 8;
    if (header.finished[row] > shard_count ||
        bytes.size() - offset < bitmap_bytes + header.finished[row] * result_bytes)
      throw damaged;
    offset += bitmap_bytes;
    for (std::uint32_t shard = 0; shard < shard_count; ++shard) {
      if ((static_cast<unsigned char>(bytes[bitmap + shard / 8]) >> shard % 8 & 1) == 0) continue;
      if (shards.finished_[row].size() == header.finished[row]) throw damaged;
      shards.set(row, shard,
                 {.digest = word_at<std::uint64_t>(bytes, offset),
                  .mismatches = word_at<std::uint32_t>(bytes, offset + 8),
                  .documented = word_at<std::uint32_t>(bytes, offset + 12)});
      offset += result_bytes;
    }
    if (shards.finished_[row].size() != header.finished[row]) throw damaged;
  }
  if (offset != bytes.size()) throw damaged;
  return shards;
}

void ShardFile::write(const std::filesystem::path& file) const {
  std::string bytes = header();
  for (std::size_t row = 0; row < lines_.size(); ++row) {
    if (finished_[row].empty()) continue;
    std::string bitmap((lines_[row].shard_count + 7) / 8, '\0');
    for (const auto& [shard, result] : finished_[row])
      bitmap[shard / 8] = static_cast<char>(bitmap[shard / 8] | 1 << shard % 8);
    bytes += bitmap;
    for (const auto& [shard, result] : finished_[row]) {
      append_word(bytes, result.digest);
      append_word(bytes, result.mismatches);
      append_word(bytes, result.documented);
    }
  }
  sim::write_file(file, bytes);
}

void ShardFile::set(std::size_t row, std::uint32_t shard, const ShardResult& result) {
  finished_[row].insert_or_assign(shard, result);
}

std::string ShardFile::header() const {
  const sim::BuildInformation& build = sim::build_information();
  std::string text = fmt::format("{}\nversion {}\nrevision {}{}\n", kind, build.version, build.git_revision,
                                 build.git_dirty ? "+changes" : "");
  for (std::size_t row = 0; row < lines_.size(); ++row)
    text += fmt::format("{} {} {}\n", lines_[row].shard_count, finished_[row].size(), lines_[row].row);
  return text + '\n';
}

std::vector<ShardFile::Line> shard_lines() {
  std::vector<ShardFile::Line> lines;
  for (const Row& row : rows()) lines.push_back({.row = row.id(), .shard_count = row.domain().shard_count});
  return lines;
}

ShardComparison compare(const ShardFile& ours, const ShardFile& theirs) {
  ShardComparison comparison;
  for (std::size_t row = 0; row < ours.lines().size(); ++row) {
    for (const auto& [shard, result] : ours.finished(row)) {
      const auto other = theirs.finished(row).find(shard);
      if (other == theirs.finished(row).end()) continue;
      ++comparison.shards_in_both;
      if (other->second.digest == result.digest) continue;
      if (comparison.shards_differing++ == 0)
        comparison.first_difference = fmt::format("{}, shard {}", ours.lines()[row].row, shard);
    }
  }
  return comparison;
}

}  // namespace experiments::validate_gpu
