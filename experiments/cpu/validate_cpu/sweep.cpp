#include "experiments/cpu/validate_cpu/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "experiments/frame/interrupt.h"
#include "experiments/frame/parallel.h"
#include "experiments/frame/stopwatch.h"
#include "experiments/validation/numbers.h"

namespace experiments::validate_cpu {
namespace {

using validation::Example;
using validation::Ledger;

/// Programs that wait for work, by their processors.
class ProgramPool {
 public:
  std::unique_ptr<Program> take(const Processor& processor) {
    {
      const std::scoped_lock lock(mutex_);
      auto& idle = idle_[&processor];
      if (!idle.empty()) {
        std::unique_ptr<Program> program = std::move(idle.back());
        idle.pop_back();
        return program;
      }
    }
    return std::make_unique<Program>(processor.command);
  }
  void give_back(const Processor& processor, std::unique_ptr<Program> program) {
    const std::scoped_lock lock(mutex_);
    idle_[&processor].push_back(std::move(program));
  }

 private:
  std::mutex mutex_;
  std::map<const Processor*, std::vector<std::unique_ptr<Program>>> idle_;
};

class Sweeper {
 public:
  Sweeper(const std::vector<Row>& all, const SweepSettings& settings, ShardFile& shards, Run& run)
      : all_(all), settings_(settings), shards_(shards), run_(run), ledger_(shards, settings.file) {
    for (const std::size_t row : settings.rows)
      outcomes_.push_back({.row = row, .obstacle = all[row].processor->obstacle_of(all[row].instruction())});
  }

  std::vector<RowOutcome> run() {
    ledger_.keep_while([&] {
      for (RowOutcome& outcome : outcomes_) take_recorded(outcome);
      execute_missing();
      for (RowOutcome& outcome : outcomes_) {
        const Domain& domain = *all_[outcome.row].instruction().domain;
        validation::add_up(outcome, domain, wanted_shards(outcome), shards_.finished(outcome.row),
                           [&](std::uint32_t shard, const auto&) { append_examples(outcome, shard); });
      }
    });
    return std::move(outcomes_);
  }

 private:
  const RowResults* recorded(const RowOutcome& outcome) const {
    const Row& row = all_[outcome.row];
    if (!row.processor->results || !outcome.obstacle.empty()) return nullptr;
    return &row.processor->results->rows.at(
        {std::string(row.processor->family->name), row.instruction().name});
  }

  void take_recorded(const RowOutcome& outcome) {
    const RowResults* const results = recorded(outcome);
    if (results == nullptr) return;
    for (const auto& [shard, result] : results->shards) ledger_.enter(outcome.row, shard, result);
  }

  std::vector<std::uint32_t> wanted_shards(const RowOutcome& outcome) const {
    if (!outcome.obstacle.empty()) return {};
    if (const RowResults* const results = recorded(outcome)) {
      std::vector<std::uint32_t> shards;
      for (const auto& [shard, result] : results->shards) shards.push_back(shard);
      return shards;
    }
    return validation::sampled_shards(*all_[outcome.row].instruction().domain, settings_.samples);
  }

  std::vector<std::uint32_t> missing_shards(const RowOutcome& outcome) const {
    std::vector<std::uint32_t> missing = wanted_shards(outcome);
    std::erase_if(missing, [&](std::uint32_t shard) { return shards_.is_finished(outcome.row, shard); });
    return missing;
  }

  std::vector<SharedShard> missing_work() const {
    std::vector<WantedShards> wanted;
    for (const RowOutcome& outcome : outcomes_)
      wanted.push_back({.instruction = &all_[outcome.row].instruction(), .shards = missing_shards(outcome)});
    return shared_shards(wanted);
  }

  void execute_missing() {
    const std::vector<SharedShard> work = missing_work();
    std::size_t steps = 0;
    for (const SharedShard& each : work) steps += each.rows.size();
    Progress progress = run_.progress("shards", steps);
    parallel_for_each(work.size(), run_.threads(), [&](std::size_t i) {
      throw_if_interrupted();
      const SharedShard& each = work[i];
      const Row& first = all_[outcomes_[each.rows.front()].row];
      const std::vector<Outcome> expected = expected_outcomes(first.instruction(), each.shard);
      for (const std::size_t place : each.rows) {
        RowOutcome& outcome = outcomes_[place];
        const Stopwatch stopwatch;
        const Judgement judgement = executed(all_[outcome.row], each.shard, expected, 0);
        ledger_.enter(outcome.row, each.shard, judgement.result);
        const std::scoped_lock lock(mutex_);
        outcome.time_s += stopwatch.seconds();
        outcome.inputs_now += expected.size();
        progress.tick();
      }
    });
  }

  Judgement executed(const Row& row, std::uint32_t shard, const std::vector<Outcome>& expected,
                     std::size_t most_differences) {
    std::unique_ptr<Program> program = programs_.take(*row.processor);
    const Instruction& instruction = row.instruction();
    const bool with_exceptions = has_judged_exceptions(*instruction.domain, shard);
    const std::size_t count = write_operands(instruction, shard, program->memory());
    program->execute(row.processor->family->name, row.number, count, with_exceptions);
    Judgement judgement =
        judge(instruction, shard, expected, program->memory(), with_exceptions, most_differences);
    programs_.give_back(*row.processor, std::move(program));
    return judgement;
  }

  void append_examples(RowOutcome& outcome, std::uint32_t shard) {
    const Row& row = all_[outcome.row];
    const std::size_t room = settings_.counterexamples - outcome.examples.size();
    if (room == 0) return;
    if (const RowResults* const results = recorded(outcome)) {
      for (const auto& [place, difference] : results->differences) {
        if (place == shard && outcome.examples.size() < settings_.counterexamples)
          outcome.examples.push_back(example_of(row.instruction(), difference, shard));
      }
      return;
    }
    throw_if_interrupted();
    const std::vector<Outcome> expected = expected_outcomes(row.instruction(), shard);
    for (const Difference& each : executed(row, shard, expected, room).differences)
      outcome.examples.push_back(example_of(row.instruction(), each, shard));
  }

  static Example example_of(const Instruction& instruction, const Difference& difference,
                            std::uint32_t shard) {
    const bool in_exceptions = difference.found.exceptions != difference.expected.exceptions;
    Example example{.kind = !in_exceptions          ? "value"
                            : difference.in_value() ? "value, exceptions"
                                                    : "exceptions",
                    .bits = {},
                    .values = {}};
    const Operands operands = instruction.domain->at(shard, difference.index);
    const auto put = [&](std::size_t place, NumberType type, std::uint64_t code) {
      example.bits[place] = validation::bits_text(type, code);
      example.values[place] = validation::value_text(type, code);
    };
    const std::array codes{operands.a, operands.b, operands.c};
    for (std::size_t k = 0; k < static_cast<std::size_t>(instruction.domain->operand_count); ++k)
      put(k, instruction.operands[k], codes[k]);
    put(3, instruction.result, difference.found.value);
    put(4, instruction.result, difference.expected.value);
    if (in_exceptions) {
      example.bits[3] += fmt::format(" {}", exceptions_text(difference.found.exceptions));
      example.bits[4] += fmt::format(" {}", exceptions_text(difference.expected.exceptions));
    }
    return example;
  }

  const std::vector<Row>& all_;
  const SweepSettings& settings_;
  ShardFile& shards_;
  Run& run_;
  Ledger ledger_;
  ProgramPool programs_;
  std::mutex mutex_;
  std::vector<RowOutcome> outcomes_;
};

}  // namespace

std::vector<Row> rows_of(const std::vector<Processor>& processors) {
  std::vector<Row> rows;
  for (const Processor& processor : processors) {
    for (std::size_t number = 0; number < processor.family->instructions().size(); ++number)
      rows.push_back({.processor = &processor, .number = number});
  }
  return rows;
}

std::vector<ShardFile::Line> shard_lines(const std::vector<Row>& rows) {
  std::vector<ShardFile::Line> lines;
  for (const Row& row : rows)
    lines.push_back({.row = fmt::format("{}, {}", row.instruction().name, row.processor->subject),
                     .shard_count = row.instruction().domain->shard_count});
  return lines;
}

std::vector<RowOutcome> sweep(const std::vector<Row>& all, const SweepSettings& settings, ShardFile& shards,
                              Run& run) {
  return Sweeper(all, settings, shards, run).run();
}

Finding finding_of(const Row& row, const RowOutcome& outcome) {
  const Instruction& instruction = row.instruction();
  return {.operation = instruction.name,
          .family = instruction.group,
          .subject = row.processor->subject,
          .reference = "software half",
          .domain = std::string(instruction.domain->meaning),
          .pipe = instruction.lanes == 1 ? "scalar" : "vector",
          .obstacle = outcome.obstacle,
          .is_complete_domain = instruction.domain->is_complete,
          .inputs_possible = instruction.domain->inputs,
          .shards_wanted = outcome.shards_wanted,
          .shards_finished = outcome.shards_finished,
          .inputs = outcome.inputs,
          .inputs_now = outcome.inputs_now,
          .mismatches = outcome.mismatches,
          .documented = outcome.documented,
          .deviation = std::string(instruction.rule),
          .examples = outcome.examples,
          .time_s = outcome.time_s};
}

}  // namespace experiments::validate_cpu
