#include "experiments/validation/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "experiments/frame/build_information.h"
#include "experiments/frame/code_identity.h"
#include "experiments/frame/files.h"
#include "experiments/frame/whole_file.h"

namespace experiments::validation {
namespace {

constexpr std::size_t digest_bytes = 8;

void append_digest(std::string& bytes, std::uint64_t digest) {
  for (std::size_t byte = 0; byte < digest_bytes; ++byte)
    bytes.push_back(static_cast<char>(digest >> 8 * byte & 0xFF));
}

void append_count(std::string& bytes, std::uint64_t count) {
  for (; count >= 0x80; count >>= 7) bytes.push_back(static_cast<char>((count & 0x7F) | 0x80));
  bytes.push_back(static_cast<char>(count));
}

constexpr std::string_view kind = "halflab shards 2";

constexpr std::uint64_t ShardResult::*counts[] = {&ShardResult::mismatches, &ShardResult::documented,
                                                  &ShardResult::other_nans, &ShardResult::misrounded};

/// Reads from the front; false where the bytes end too early or a count does not end.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool read(std::string_view& bytes, std::size_t size) {
    if (rest_.size() < size) return false;
    bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  bool read(ShardResult& result) {
    std::string_view digest;
    if (!read(digest, digest_bytes)) return false;
    for (std::size_t byte = 0; byte < digest_bytes; ++byte)
      result.digest |= std::uint64_t{static_cast<unsigned char>(digest[byte])} << 8 * byte;
    return std::ranges::all_of(counts, [&](auto count) { return read_count(result.*count); });
  }
  bool is_at_end() const { return rest_.empty(); }

 private:
  bool read_count(std::uint64_t& count) {
    for (int shift = 0; shift < 64; shift += 7) {
      std::string_view byte;
      if (!read(byte, 1)) return false;
      const auto bits = static_cast<unsigned char>(byte.front());
      count |= std::uint64_t{bits & 0x7FU} << shift;
      if ((bits & 0x80) == 0) return true;
    }
    return false;
  }

  std::string_view rest_;
};

/// Where in `bytes` the binary part begins, and what stands before it.
struct Header {
  std::size_t end = 0;
  std::string version, revision, gpu;
  std::vector<ShardFile::Line> lines;
  std::vector<std::size_t> finished;  ///< shards of each row
};

std::string_view way_out(ShardFile::Use use) {
  return use == ShardFile::Use::go_on ? "--restart begins anew, another --out keeps it"
                                      : "give that of a run of this version";
}

Header parse_header(const std::string& bytes, const std::string& name, ShardFile::Use use) {
  if (!bytes.starts_with(fmt::format("{}\n", kind)))
    throw std::runtime_error(fmt::format("{} is no shard file of this version, which begins with '{}'; {}",
                                         name, kind, way_out(use)));
  const std::size_t end = bytes.find("\n\n");
  if (end == std::string::npos)
    throw std::runtime_error(fmt::format("{}: the list of rows has no end; {}", name, way_out(use)));
  Header header{.end = end + 2, .version = {}, .revision = {}, .gpu = {}, .lines = {}, .finished = {}};
  std::istringstream text(bytes.substr(kind.size() + 1, end - kind.size()));
  std::string word;
  text >> word >> header.version >> word >> header.revision >> word;
  std::getline(text, header.gpu);
  if (header.gpu.starts_with(' ')) header.gpu.erase(0, 1);
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
    throw std::runtime_error(fmt::format("{} is of version '{}' of Halflab; allowed: {}; {}", name,
                                         header.version, ours.version, way_out(use)));
  }
  if (use == ShardFile::Use::go_on && header.revision != ours.revision) {
    throw std::runtime_error(fmt::format("{} is of revision {}, this program of {}; {}", name,
                                         header.revision, ours.revision, way_out(use)));
  }
  if (header.lines == ours.lines) return;
  const auto [theirs, own] =
      std::mismatch(header.lines.begin(), header.lines.end(), ours.lines.begin(), ours.lines.end());
  throw std::runtime_error(fmt::format("{} is of other rows: it has '{}' where this program has '{}'; {}",
                                       name, theirs == header.lines.end() ? "no more" : theirs->row,
                                       own == ours.lines.end() ? "no more" : own->row, way_out(use)));
}

}  // namespace

ShardFile::ShardFile(std::vector<Line> lines) : lines_(std::move(lines)), finished_(lines_.size()) {}

ShardFile ShardFile::read(const std::filesystem::path& file, std::vector<Line> lines, Use use) {
  const std::string bytes = read_file(file);
  ShardFile shards(std::move(lines));
  const Header header = parse_header(bytes, file.string(), use);
  require_same(header, parse_header(shards.header(), "this program", use), file.string(), use);
  const std::runtime_error damaged(
      fmt::format("{}: is damaged, its shards do not fit its list of rows; {}", file.string(), way_out(use)));

  shards.gpu_ = header.gpu;
  Reader reader(std::string_view(bytes).substr(header.end));
  for (std::size_t row = 0; row < shards.lines_.size(); ++row) {
    if (header.finished[row] == 0) continue;
    const std::uint32_t shard_count = shards.lines_[row].shard_count;
    std::string_view bitmap;
    if (!reader.read(bitmap, (shard_count + 7) / 8)) throw damaged;
    for (std::uint32_t shard = 0; shard < shard_count; ++shard) {
      if ((static_cast<unsigned char>(bitmap[shard / 8]) >> shard % 8 & 1) == 0) continue;
      ShardResult result;
      if (!reader.read(result)) throw damaged;
      shards.set(row, shard, result);
    }
    if (shards.finished_[row].size() != header.finished[row]) throw damaged;
  }
  if (!reader.is_at_end()) throw damaged;
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
      append_digest(bytes, result.digest);
      for (const auto count : counts) append_count(bytes, result.*count);
    }
  }
  write_file(file, bytes);
}

void ShardFile::set(std::size_t row, std::uint32_t shard, const ShardResult& result) {
  finished_[row].insert_or_assign(shard, result);
}

void ShardFile::set_gpu(const std::string& name) {
  if (!gpu_.empty() && gpu_ != name)
    throw std::runtime_error(fmt::format(
        "the shards are of GPU '{}', this one is '{}'; --restart begins anew, another --out keeps them", gpu_,
        name));
  gpu_ = name;
}

std::string ShardFile::header() const {
  std::string text = fmt::format("{}\nversion {}\nrevision {}\ngpu {}\n", kind, build_information().version,
                                 code_identity(), gpu_);
  for (std::size_t row = 0; row < lines_.size(); ++row)
    text += fmt::format("{} {} {}\n", lines_[row].shard_count, finished_[row].size(), lines_[row].row);
  return text + '\n';
}

ShardComparison compare(const FinishedShards& ours, const FinishedShards& theirs, const std::string& row) {
  ShardComparison comparison;
  for (const auto& [shard, result] : ours) {
    const auto other = theirs.find(shard);
    if (other == theirs.end()) continue;
    ++comparison.shards_in_both;
    if (other->second.digest == result.digest) continue;
    if (comparison.shards_differing++ == 0)
      comparison.first_difference = fmt::format("{}, shard {}", row, shard);
  }
  return comparison;
}

void add(ShardComparison& sum, const ShardComparison& part) {
  sum.shards_in_both += part.shards_in_both;
  if (sum.shards_differing == 0) sum.first_difference = part.first_difference;
  sum.shards_differing += part.shards_differing;
}

ShardComparison compare(const ShardFile& ours, const ShardFile& theirs) {
  ShardComparison sum;
  for (std::size_t row = 0; row < ours.lines().size(); ++row)
    add(sum, compare(ours.finished(row), theirs.finished(row), ours.lines()[row].row));
  return sum;
}

void Ledger::enter(std::size_t row, std::uint32_t shard, const ShardResult& result) {
  constexpr double between_writes_s = 20;
  const std::scoped_lock lock(mutex_);
  shards_.set(row, shard, result);
  changed_ = true;
  if (!written_ || written_->seconds() >= between_writes_s) write();
}

void Ledger::save() {
  if (changed_) write();
}

void Ledger::write() {
  shards_.write(file_);
  written_.emplace();
  changed_ = false;
}

}  // namespace experiments::validation
