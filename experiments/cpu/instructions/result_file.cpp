#include "experiments/cpu/instructions/result_file.h"

#include <algorithm>
#include <istream>
#include <ostream>
#include <sstream>
#include <stdexcept>

namespace experiments::validate_cpu {
namespace {

constexpr std::string_view kind = "halflab cpu 1";

/// Reads the lines, of which each adds to the file.
class Reader {
 public:
  explicit Reader(std::istream& stream) : stream_(stream) {}

  ResultFile read() {
    std::string line;
    if (!std::getline(stream_, line) || line != kind)
      throw std::runtime_error("is no file of results, which begins with '" + std::string(kind) + "'");
    for (number_ = 2; std::getline(stream_, line); ++number_) {
      if (line == "end") return std::move(file_);
      words_ = std::istringstream(line);
      std::string verb;
      words_ >> verb;
      take(verb, line);
    }
    throw std::runtime_error("is cut off: its last line is not 'end'");
  }

 private:
  void take(const std::string& verb, const std::string& line) {
    if (verb == "version") {
      words_ >> file_.version;
    } else if (verb == "model") {
      std::getline(words_ >> std::ws, file_.model);
    } else if (verb == "family") {
      std::string family;
      words_ >> family >> file_.families[family];
    } else if (verb == "row") {
      std::string family, name;
      words_ >> family;
      std::getline(words_ >> std::ws, name);
      row_ = &file_.rows[{family, name}];
    } else if (verb == "without" && row_ != nullptr) {
      std::getline(words_ >> std::ws, row_->obstacle);
    } else if (verb == "shard" && row_ != nullptr) {
      std::uint32_t shard = 0;
      ShardResult result;
      words_ >> shard >> std::hex >> result.digest >> std::dec >> result.mismatches >> result.documented;
      row_->shards[shard] = result;
    } else if (verb == "difference" && row_ != nullptr) {
      std::uint32_t shard = 0;
      row_->differences.emplace_back(shard, read_difference(shard));
      row_->differences.back().first = shard;
    } else if (verb != "without") {
      throw std::runtime_error("line " + std::to_string(number_) + ": '" + line + "' is not allowed");
    }
    if (!words_) throw std::runtime_error("line " + std::to_string(number_) + ": '" + line + "' is damaged");
  }

  Difference read_difference(std::uint32_t& shard) {
    Difference difference;
    unsigned found = 0, expected = 0;
    words_ >> shard >> difference.index >> std::hex >> difference.found.value >> found >>
        difference.expected.value >> expected;
    difference.found.exceptions = static_cast<Exceptions>(found);
    difference.expected.exceptions = static_cast<Exceptions>(expected);
    return difference;
  }

  std::istream& stream_;
  std::size_t number_ = 1;
  std::istringstream words_;
  RowResults* row_ = nullptr;
  ResultFile file_;
};

}  // namespace

void RowResults::add(std::uint32_t shard, Judgement judgement) {
  shards.insert_or_assign(shard, judgement.result);
  for (Difference& each : judgement.differences) differences.emplace_back(shard, std::move(each));
  std::ranges::sort(differences, {},
                    [](const auto& each) { return std::pair(each.first, each.second.index); });
  if (differences.size() > most_differences) differences.resize(most_differences);
}

std::string obstacle_text(std::string_view needs) {
  return "needs " + std::string(needs);
}

void write_header(std::ostream& stream, const std::string& introduction, std::string_view version) {
  stream << kind << "\nversion " << version << '\n' << introduction;
}

void write_row(std::ostream& stream, std::string_view family, const std::string& name,
               const RowResults& results) {
  stream << "row " << family << ' ' << name << '\n';
  if (!results.obstacle.empty()) stream << "without " << results.obstacle << '\n';
  for (const auto& [shard, result] : results.shards)
    stream << "shard " << shard << ' ' << std::hex << result.digest << std::dec << ' ' << result.mismatches
           << ' ' << result.documented << '\n';
  for (const auto& [shard, each] : results.differences)
    stream << "difference " << shard << ' ' << each.index << std::hex << ' ' << each.found.value << ' '
           << unsigned{each.found.exceptions} << ' ' << each.expected.value << ' '
           << unsigned{each.expected.exceptions} << std::dec << '\n';
}

ResultFile read_results(std::istream& stream) {
  return Reader(stream).read();
}

}  // namespace experiments::validate_cpu
