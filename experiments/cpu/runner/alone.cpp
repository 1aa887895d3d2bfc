#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "experiments/cpu/instructions/family.h"
#include "experiments/cpu/instructions/result_file.h"
#include "experiments/cpu/instructions/shard_trials.h"
#include "experiments/cpu/runner/runner.h"
#include "experiments/frame/build_information.h"

namespace experiments::validate_cpu {
namespace {

namespace fs = std::filesystem;

/// A row and what became of it.
struct Trial {
  const Family* family;
  const Instruction* instruction;
  RowResults results = {};
};

std::vector<Trial> chosen_rows(const std::string& text) {
  std::vector<Trial> rows;
  for (const Family& family : families()) {
    if (family.processor != this_processor()) continue;
    for (const Instruction& instruction : family.instructions()) {
      const bool is_chosen = instruction.name.find(text) != std::string::npos ||
                             instruction.group.find(text) != std::string_view::npos;
      if (is_chosen) rows.push_back({.family = &family, .instruction = &instruction});
    }
  }
  return rows;
}

/// Tries the shards of the rows one after the other, as threads become free.
class Runner {
 public:
  Runner(std::vector<Trial>& rows, std::uint64_t samples) : rows_(rows) {
    std::vector<WantedShards> wanted;
    for (Trial& trial : rows) {
      const bool can_run = trial.family->has(trial.instruction->needs);
      if (!can_run) trial.results.obstacle = obstacle_text(trial.instruction->needs);
      wanted.push_back({.instruction = trial.instruction, .shards = {}});
      if (can_run) wanted.back().shards = sampled_shards(*trial.instruction->domain, samples);
    }
    work_ = shared_shards(wanted);
  }

  void run(unsigned threads) {
    std::vector<std::jthread> helpers;
    for (unsigned helper = 1; helper < threads; ++helper) helpers.emplace_back([this] { work(); });
    work();
  }

 private:
  void work() {
    std::vector<std::byte> bytes(ShardMemory::size);
    const ShardMemory memory(bytes.data());
    for (std::size_t next = next_++; next < work_.size(); next = next_++) {
      const auto& [shard, rows] = work_[next];
      const std::vector<Outcome> expected = expected_outcomes(*rows_[rows.front()].instruction, shard);
      for (const std::size_t row : rows) execute(rows_[row], shard, expected, memory);
    }
  }

  void execute(Trial& trial, std::uint32_t shard, const std::vector<Outcome>& expected,
               const ShardMemory& memory) {
    const Instruction& instruction = *trial.instruction;
    const std::size_t count = write_operands(instruction, shard, memory);
    const bool with_exceptions = has_judged_exceptions(*instruction.domain, shard);
    instruction.execute(memory.batch(count, with_exceptions), instruction.mode);
    Judgement judgement =
        judge(instruction, shard, expected, memory, with_exceptions, RowResults::most_differences);
    const std::scoped_lock lock(mutex_);
    trial.results.add(shard, std::move(judgement));
  }

  std::vector<Trial>& rows_;
  std::vector<SharedShard> work_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
};

struct Group {
  std::string_view name;
  std::size_t rows = 0, run = 0, wrong = 0;
  std::uint64_t inputs = 0, mismatches = 0, documented = 0;
  std::string obstacle;
};

std::vector<Group> groups_of(const std::vector<Trial>& rows) {
  std::vector<Group> groups;
  for (const Trial& row : rows) {
    auto group = std::ranges::find(groups, row.instruction->group, &Group::name);
    if (group == groups.end()) group = groups.insert(group, {.name = row.instruction->group});
    ++group->rows;
    if (!row.results.obstacle.empty()) group->obstacle = row.results.obstacle;
    if (row.results.shards.empty()) continue;
    ++group->run;
    std::uint64_t mismatches = 0;
    for (const auto& [shard, result] : row.results.shards) {
      group->inputs += row.instruction->domain->inputs_of(shard);
      group->documented += result.documented;
      mismatches += result.mismatches;
    }
    group->mismatches += mismatches;
    group->wrong += mismatches != 0;
  }
  return groups;
}

/// Prints one difference each of the first rows that have any.
void print_differences(const std::vector<Trial>& rows) {
  std::size_t left = 12;
  for (const Trial& row : rows) {
    if (row.results.differences.empty() || left-- == 0) continue;
    const Difference& first = row.results.differences.front().second;
    const auto number = [](std::uint64_t code) { return static_cast<unsigned long long>(code); };
    std::printf("%s: a 0x%llx b 0x%llx c 0x%llx gave 0x%llx (%s), expected 0x%llx (%s)\n",
                row.instruction->name.c_str(), number(first.operands.a), number(first.operands.b),
                number(first.operands.c), number(first.found.value),
                exceptions_text(first.found.exceptions).c_str(), number(first.expected.value),
                exceptions_text(first.expected.exceptions).c_str());
    if (left == 0) break;
  }
}

void print_table(const std::vector<Group>& groups) {
  std::printf("%-26s %5s %14s %11s %11s  %s\n", "operations", "rows", "inputs", "mismatches", "documented",
              "verdict");
  for (const Group& group : groups) {
    std::string verdict = group.run == 0 ? "not run" : group.mismatches != 0 ? "MISMATCH" : "equal";
    if (group.run != group.rows)
      verdict += ", " + std::to_string(group.rows - group.run) + " rows not run: " + group.obstacle;
    std::printf("%-26s %5zu %14llu %11llu %11llu  %s\n", std::string(group.name).c_str(), group.rows,
                static_cast<unsigned long long>(group.inputs),
                static_cast<unsigned long long>(group.mismatches),
                static_cast<unsigned long long>(group.documented), verdict.c_str());
  }
}

/// A file that is opened before the work, and has its name once it is whole; a device or pipe is written into.
class ResultStream {
 public:
  explicit ResultStream(const std::string& file)
      : file_(file),
        written_(fs::exists(file) && !fs::is_regular_file(file) ? file : file + ".partial"),
        stream_(written_) {
    require_good();
  }

  void write(const std::string& model, const std::vector<Trial>& rows) {
    write_header(stream_, introduction(model), build_information().version);
    for (const Trial& row : rows) write_row(stream_, row.family->name, row.instruction->name, row.results);
    stream_ << "end\n";
    stream_.close();
    require_good();
    if (written_ != file_) fs::rename(written_, file_);
  }

 private:
  void require_good() const {
    if (!stream_) throw std::runtime_error("--out: file '" + file_ + "' cannot be written");
  }

  std::string file_, written_;
  std::ofstream stream_;
};

}  // namespace

int validate_alone(const RunnerOptions& options) {
  std::vector<Trial> rows = chosen_rows(options.rows);
  if (rows.empty())
    throw std::runtime_error("--rows: '" + options.rows + "' is in no row; --list shows them");
  std::optional<ResultStream> results;
  if (!options.out.empty()) results.emplace(options.out);
  const auto start = std::chrono::steady_clock::now();
  Runner(rows, options.samples).run(options.threads);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  const std::vector<Group> groups = groups_of(rows);
  std::size_t run = 0, wrong = 0;
  std::uint64_t mismatches = 0;
  for (const Group& group : groups) {
    run += group.run;
    wrong += group.wrong;
    mismatches += group.mismatches;
  }
  const std::string model = options.emulator.empty() ? processor_name() : emulator_called(options.emulator);
  if (run == 0)
    std::printf("Nothing of this runs on %s.\n\n", model.c_str());
  else if (mismatches == 0)
    std::printf("%zu rows on %s: every result and every exception is the expected one.\n\n", run,
                model.c_str());
  else
    std::printf("%zu rows on %s: %llu results in %zu of these rows are not the expected ones.\n\n", run,
                model.c_str(), static_cast<unsigned long long>(mismatches), wrong);
  print_table(groups);
  print_differences(rows);
  std::printf("\n%.1f s with %u %s.\n", time.count(), options.threads,
              options.threads == 1 ? "thread" : "threads");
  if (results) results->write(model, rows);
  return mismatches == 0 ? 0 : 1;
}

}  // namespace experiments::validate_cpu
