#include "experiments/gpu/validate_gpu/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "experiments/frame/interrupt.h"
#include "experiments/frame/parallel.h"
#include "experiments/frame/stopwatch.h"
#include "experiments/gpu/validate_gpu/attempts.h"
#include "experiments/validation/shards.h"

namespace experiments::validate_gpu {
namespace {

class Sweeper {
 public:
  Sweeper(const SweepSettings& settings, ShardFile& shards, Run& run, DeviceFailures& failures)
      : settings_(settings),
        shards_(shards),
        run_(run),
        failures_(failures),
        ledger_(shards, settings.file),
        budget_(settings.budget_s),
        repetitions_(failures, budget_) {
    for (const std::size_t row : settings.rows)
      outcomes_.push_back({.row = row, .obstacle = obstacle_of(row)});
  }

  std::vector<RowOutcome> run() {
    ledger_.keep_while([&] {
      run_on_cpu();
      run_on_device();
      for (RowOutcome& outcome : outcomes_) add_up(outcome);
    });
    return std::move(outcomes_);
  }

 private:
  const Driver& driver_of(std::size_t row) const { return (*settings_.drivers)[*rows()[row].driver]; }

  std::string obstacle_of(std::size_t index) const {
    const Row& row = rows()[index];
    if (!row.is_on_gpu())
      return row.function == nullptr ? "needs cuda_fp16.h" : settings_.on_cpu ? "" : "needs --device cpu";
    if (!row.driver) return "no kernel yet";
    return settings_.on_gpu ? driver_of(index).obstacle() : "needs a GPU";
  }

  std::vector<std::uint32_t> wanted_shards(const RowOutcome& outcome) const {
    if (!outcome.obstacle.empty()) return {};
    const Row& row = rows()[outcome.row];
    if (!row.is_on_gpu()) return sampled_shards(row.domain(), settings_.samples);
    const Driver& driver = driver_of(outcome.row);
    const bool all = settings_.all_triples && row.operation->family == fused_family;
    return sampled_shards(driver.domain, all ? driver.domain.inputs : settings_.gpu_samples / driver.cost);
  }

  std::vector<std::uint32_t> missing_shards(const RowOutcome& outcome) const {
    std::vector<std::uint32_t> missing = wanted_shards(outcome);
    std::erase_if(missing, [&](std::uint32_t shard) { return shards_.is_finished(outcome.row, shard); });
    return missing;
  }

  void run_on_cpu() {
    std::vector<std::pair<RowOutcome*, std::vector<std::uint32_t>>> work;
    std::size_t missing = 0;
    for (RowOutcome& outcome : outcomes_) {
      if (rows()[outcome.row].is_on_gpu()) continue;
      work.emplace_back(&outcome, missing_shards(outcome));
      missing += work.back().second.size();
    }
    Progress progress = run_.progress("shards", missing);
    for (const auto& [outcome, wanted] : work) run_on_cpu(*outcome, wanted, progress);
  }

  void run_on_cpu(RowOutcome& outcome, const std::vector<std::uint32_t>& wanted, Progress& progress) {
    const Row& row = rows()[outcome.row];
    std::mutex mutex;
    double last_s = 0;
    parallel_for_each(wanted.size(), run_.threads(), [&](std::size_t i) {
      {
        const std::scoped_lock lock(mutex);
        if (!budget_.allows(last_s)) return;
      }
      const Stopwatch stopwatch;
      const ShardResult result = run_shard(row, wanted[i]);
      const double time_s = stopwatch.seconds();
      ledger_.enter(outcome.row, wanted[i], result);
      const std::scoped_lock lock(mutex);
      last_s = time_s;
      outcome.time_s += time_s;
      outcome.inputs_now += row.domain().inputs_of(wanted[i]);
      progress.tick();
    });
  }

  /// What of a driver's is missing from any of the chosen rows.
  struct DeviceWork {
    const Driver* driver;
    std::vector<RowOutcome*> outcomes;  ///< of each of its rows; null for those not chosen
    std::set<std::uint32_t> missing = {};
    double last_s = 0;     ///< of its latest shard
    std::size_t kept = 0;  ///< of its answers

    std::uint64_t inputs() const {
      std::uint64_t sum = 0;
      for (const std::uint32_t shard : missing) sum += driver->domain.inputs_of(shard);
      return sum;
    }
  };

  /// Open questions and functions, those of the fewest inputs first. Then tensor cores in the order of their list,
  /// which ends with wgmma: of all kernels these are the likeliest to fault, which would end the others too.
  std::vector<DeviceWork> device_work() {
    std::vector<DeviceWork> work;
    for (RowOutcome& outcome : outcomes_) {
      if (!rows()[outcome.row].is_on_gpu() || !outcome.obstacle.empty()) continue;
      const Driver& driver = driver_of(outcome.row);
      auto found = std::ranges::find(work, &driver, &DeviceWork::driver);
      if (found == work.end()) {
        found = work.insert(work.end(), {.driver = &driver});
        found->outcomes.resize(driver.rows.size());
      }
      found->outcomes[place_of(outcome.row)] = &outcome;
      const std::vector<std::uint32_t> missing = missing_shards(outcome);
      found->missing.insert(missing.begin(), missing.end());
    }
    std::ranges::stable_sort(work, {}, [](const DeviceWork& each) {
      const std::uint64_t cost = each.driver->cost;
      return std::pair(cost, cost == 1 ? each.inputs() : 0);
    });
    return work;
  }

  std::size_t place_of(std::size_t row) const {
    const std::vector<std::string>& ids = driver_of(row).rows;
    return static_cast<std::size_t>(std::ranges::find(ids, rows()[row].id()) - ids.begin());
  }

  static std::uint64_t progress_units(const Driver& driver, std::uint32_t shard) {
    constexpr std::uint64_t unit = 1 << 16;
    return driver.domain.inputs_of(shard) / unit + 1;
  }

  /// The first shard of each driver, then the second ones: so a budget reaches every row.
  void run_on_device() {
    std::vector<DeviceWork> all = device_work();
    std::uint64_t units = 0;
    for (const DeviceWork& work : all) {
      for (const std::uint32_t shard : work.missing) units += progress_units(*work.driver, shard);
    }
    Progress progress = run_.progress("GPU", units);
    while (true) {
      std::erase_if(all, [](const DeviceWork& work) { return work.missing.empty(); });
      if (all.empty()) return;
      for (DeviceWork& work : all) {
        if (!budget_.allows(work.last_s)) {
          work.missing.clear();
          continue;
        }
        run_next(work, progress);
        if (failures_.is_device_lost()) return;
      }
    }
  }

  /// One shard. Where the device fails at it, that was the last one of its rows.
  void run_next(DeviceWork& work, Progress& progress) {
    const std::uint32_t shard = work.missing.extract(work.missing.begin()).value();
    const Driver& driver = *work.driver;
    const Stopwatch stopwatch;
    std::optional<DeviceAnswer> answer =
        failures_.attempt(driver.rows, fmt::format("shard {}", shard), [&] { return driver.run(shard); });
    if (!answer) {
      work.missing.clear();
      return;
    }
    enter(work, shard, *answer);
    work.last_s = stopwatch.seconds();
    const bool has_examples =
        std::ranges::any_of(answer->rows, [](const RowAnswer& row) { return !row.examples.empty(); });
    if (has_examples && work.kept++ < settings_.counterexamples)
      repetitions_.keep(driver, shard, *std::move(answer), work.last_s);
    progress.tick(progress_units(driver, shard));
  }

  void enter(const DeviceWork& work, std::uint32_t shard, const DeviceAnswer& answer) {
    for (std::size_t i = 0; i < work.outcomes.size(); ++i) {
      RowOutcome* const outcome = work.outcomes[i];
      if (outcome == nullptr) continue;
      ledger_.enter(outcome->row, shard, answer.rows.at(i).result);
      outcome->time_s += answer.time_s;
      outcome->inputs_now += work.driver->domain.inputs_of(shard);
    }
  }

  void add_up(RowOutcome& outcome) {
    const Row& row = rows()[outcome.row];
    validation::add_up(outcome, row.domain(), wanted_shards(outcome), shards_.finished(outcome.row),
                       [&](std::uint32_t shard, const ShardResult& result) {
                         if (outcome.examples.size() < settings_.counterexamples)
                           append_examples(outcome, shard, result);
                       });
    if (row.operation->has_canonical_nans) outcome.mismatches += outcome.other_nans;
  }

  void append_examples(RowOutcome& outcome, std::uint32_t shard, const ShardResult& result) {
    const Row& row = rows()[outcome.row];
    const std::size_t room = settings_.counterexamples - outcome.examples.size();
    if (!row.is_on_gpu()) {
      for (const Trial& trial : counterexamples(row, shard, room))
        outcome.examples.push_back(example_of(row, trial));
      return;
    }
    throw_if_interrupted();
    const std::optional<DeviceAnswer>& repetition = repetitions_.answer_of(driver_of(outcome.row), shard);
    if (!repetition) return;
    const RowAnswer& again = repetition->rows.at(place_of(outcome.row));
    if (again.result != result) {
      ++outcome.mismatches;
      outcome.examples.push_back(repetition_example(again.result.digest, result.digest));
      return;
    }
    std::ranges::copy_n(again.examples.begin(),
                        static_cast<std::ptrdiff_t>(std::min(room, again.examples.size())),
                        std::back_inserter(outcome.examples));
  }

  const SweepSettings& settings_;
  ShardFile& shards_;
  Run& run_;
  DeviceFailures& failures_;
  Ledger ledger_;
  Budget budget_;
  Repetitions repetitions_;
  std::vector<RowOutcome> outcomes_;
};

}  // namespace

std::vector<RowOutcome> sweep(const SweepSettings& settings, ShardFile& shards, Run& run,
                              DeviceFailures& failures) {
  return Sweeper(settings, shards, run, failures).run();
}

}  // namespace experiments::validate_gpu
