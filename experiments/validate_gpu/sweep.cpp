#include "experiments/validate_gpu/sweep.h"

#include <chrono>
#include <mutex>

#include "experiments/common/interrupt.h"
#include "experiments/common/parallel.h"

namespace experiments::validate_gpu {
namespace {

using Clock = std::chrono::steady_clock;

/// The shards that all threads write to, and the file that they are saved in.
class Ledger {
 public:
  Ledger(ShardFile& shards, const std::filesystem::path& file) : shards_(shards), file_(file) {}

  void enter(RowOutcome& outcome, std::uint32_t shard, const ShardResult& result,
             std::chrono::duration<double> time) {
    const std::scoped_lock lock(mutex_);
    shards_.set(outcome.row, shard, result);
    outcome.time_s += time.count();
    outcome.inputs_now += rows()[outcome.row].domain().shard_size;
    constexpr std::chrono::seconds between_writes{20};
    if (Clock::now() - written_ >= between_writes) write();
  }

  void write() {
    shards_.write(file_);
    written_ = Clock::now();
  }

 private:
  ShardFile& shards_;
  const std::filesystem::path& file_;
  std::mutex mutex_;
  Clock::time_point written_ = Clock::now();
};

std::vector<std::uint32_t> missing_shards(std::size_t row, std::uint64_t samples, const ShardFile& shards) {
  if (!rows()[row].runs()) return {};
  std::vector<std::uint32_t> missing = sampled_shards(rows()[row].domain(), samples);
  std::erase_if(missing, [&](std::uint32_t shard) { return shards.is_finished(row, shard); });
  return missing;
}

/// From the shards: the same whoever computed them, and when.
void add_up(const SweepSettings& settings, const ShardFile& shards, RowOutcome& outcome) {
  const Row& row = rows()[outcome.row];
  if (!row.runs()) return;
  for (const std::uint32_t shard : sampled_shards(row.domain(), settings.samples)) {
    const ShardResult& result = shards.finished(outcome.row).at(shard);
    outcome.inputs += row.domain().shard_size;
    outcome.mismatches += result.mismatches;
    outcome.documented += result.documented;
    if (result.mismatches == 0 || outcome.counterexamples.size() == settings.counterexamples) continue;
    for (const Trial& trial :
         counterexamples(row, shard, settings.counterexamples - outcome.counterexamples.size()))
      outcome.counterexamples.push_back(trial);
  }
}

}  // namespace

std::vector<RowOutcome> sweep(const SweepSettings& settings, ShardFile& shards, Run& run) {
  std::size_t missing = 0;
  for (const std::size_t row : settings.rows) missing += missing_shards(row, settings.samples, shards).size();
  Progress progress = run.progress("shards", missing);
  Ledger ledger(shards, settings.file);
  std::vector<RowOutcome> outcomes;
  try {
    for (const std::size_t row : settings.rows) {
      RowOutcome& outcome = outcomes.emplace_back(RowOutcome{.row = row});
      const std::vector<std::uint32_t> wanted = missing_shards(row, settings.samples, shards);
      parallel_for_each(wanted.size(), run.threads(), [&](std::size_t i) {
        const Clock::time_point start = Clock::now();
        const ShardResult result = run_shard(rows()[row], wanted[i]);
        ledger.enter(outcome, wanted[i], result, Clock::now() - start);
        progress.tick();
      });
      add_up(settings, shards, outcome);
    }
  } catch (const Interrupted&) {
    ledger.write();
    throw Interrupted("interrupted; the finished shards are kept in " + settings.file.string());
  }
  if (missing != 0) ledger.write();
  return outcomes;
}

}  // namespace experiments::validate_gpu
