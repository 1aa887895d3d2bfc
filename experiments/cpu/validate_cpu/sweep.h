#pragma once
/// Tries the rows shard by shard, each thread with programs of its own, and goes on where an earlier run stopped.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/cpu/validate_cpu/processors.h"
#include "experiments/frame/experiment.h"
#include "experiments/validation/findings.h"
#include "experiments/validation/row_outcome.h"
#include "experiments/validation/shards.h"

namespace experiments::validate_cpu {

using validation::Finding;
using validation::RowOutcome;
using validation::ShardFile;

/// An instruction by who executes it.
struct Row {
  const Processor* processor;
  std::size_t number;  ///< of the instruction in its family

  const Instruction& instruction() const { return processor->family->instructions()[number]; }
};

/// All rows of the processors, which must outlive them.
std::vector<Row> rows_of(const std::vector<Processor>& processors);

/// A line for each row, which names who executes it: shards of others are refused.
std::vector<ShardFile::Line> shard_lines(const std::vector<Row>& rows);

struct SweepSettings {
  std::vector<std::size_t> rows;  ///< numbers of the rows to try
  std::uint64_t samples = 0;      ///< trials of a row; at least that many, in whole shards
  std::filesystem::path file;     ///< of the shards
  std::size_t counterexamples = 8;
};

/// One outcome for each of settings.rows, in their order. What a processor has found already is taken from there.
std::vector<RowOutcome> sweep(const std::vector<Row>& all, const SweepSettings& settings, ShardFile& shards,
                              Run& run);

Finding finding_of(const Row& row, const RowOutcome& outcome);

}  // namespace experiments::validate_cpu
