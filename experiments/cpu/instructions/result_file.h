#pragma once
/// What a program found alone on its processor, as a file that validate_cpu makes a record of.
///
/// Lines: "halflab cpu 1", "version" and Halflab's, the introduction as programs tell it, with a hash of each family's rows;
/// then for each row "row FAMILY NAME" and below it either "without" and the reason, or for each shard "shard NUMBER DIGEST
/// MISMATCHES DOCUMENTED" and for each of the first differences "difference SHARD INDEX VALUE EXCEPTIONS VALUE EXCEPTIONS",
/// found and expected; "end". Codes and digests are hexadecimal.

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/cpu/instructions/shard_trials.h"

namespace experiments::validate_cpu {

struct RowResults {
  static constexpr std::size_t most_differences = 8;

  std::string obstacle;  ///< why it did not run; empty where it did
  std::map<std::uint32_t, ShardResult> shards;
  std::vector<std::pair<std::uint32_t, Difference>> differences;  ///< by their shards, the first ones

  void add(std::uint32_t shard, Judgement judgement);
};

/// Why a row with such needs does not run.
std::string obstacle_text(std::string_view needs);

void write_header(std::ostream& stream, const std::string& introduction, std::string_view version);
void write_row(std::ostream& stream, std::string_view family, const std::string& name,
               const RowResults& results);

struct ResultFile {
  std::string version;
  std::string model;                            ///< of the processor
  std::map<std::string, std::string> families;  ///< list_identity() by name
  std::map<std::pair<std::string, std::string>, RowResults>
      rows;  ///< by family and name; operands are left out
};

/// Throws std::runtime_error, naming the line, for what is none, or is cut off.
ResultFile read_results(std::istream& stream);

}  // namespace experiments::validate_cpu
