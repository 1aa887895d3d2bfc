#include "experiments/cpu/instructions/shard_trials.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace experiments::validate_cpu {
namespace {

/// Every processor here is little-endian.
template <class Code>
void store_as(std::byte* place, std::uint64_t value) {
  const auto code = static_cast<Code>(value);
  std::memcpy(place, &code, sizeof code);
}
template <class Code>
std::uint64_t load_as(const std::byte* place) {
  Code code;
  std::memcpy(&code, place, sizeof code);
  return code;
}

// A code takes as many bytes as stored_bytes() gives; a copy of a size that the compiler knows takes no call.
void store(std::byte* place, std::size_t bytes, std::uint64_t code) {
  if (bytes == 2) return store_as<std::uint16_t>(place, code);
  if (bytes == 4) return store_as<std::uint32_t>(place, code);
  store_as<std::uint64_t>(place, code);
}
std::uint64_t load(const std::byte* place, std::size_t bytes) {
  if (bytes == 2) return load_as<std::uint16_t>(place);
  return bytes == 4 ? load_as<std::uint32_t>(place) : load_as<std::uint64_t>(place);
}

bool have_same_answers(const Instruction& a, const Instruction& b) {
  return a.domain == b.domain && a.model == b.model && a.mode == b.mode;
}

}  // namespace

std::string exceptions_text(Exceptions exceptions) {
  constexpr std::array names{"inexact",        "underflow", "overflow",
                             "divide-by-zero", "invalid",   "subnormal-operand"};
  std::string text;
  for (std::size_t bit = 0; bit < names.size(); ++bit) {
    if ((exceptions >> bit & 1) == 0) continue;
    if (!text.empty()) text += ' ';
    text += names[bit];
  }
  return text.empty() ? "none" : text;
}

Batch ShardMemory::batch(std::size_t count, bool with_exceptions) const {
  return {.operands = {operands(0), operands(1), operands(2)},
          .results = results(),
          .exceptions = with_exceptions ? exceptions() : nullptr,
          .count = count};
}

std::size_t write_operands(const Instruction& instruction, std::uint32_t shard, const ShardMemory& memory) {
  const auto count = static_cast<std::size_t>(instruction.domain->inputs_of(shard));
  std::array<std::size_t, 3> bytes{};
  for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = stored_bytes(instruction.operands[k]);
  const auto used = static_cast<std::size_t>(instruction.domain->operand_count);
  for (std::size_t index = 0; index < count; ++index) {
    const Operands trial = instruction.domain->at(shard, static_cast<std::uint32_t>(index));
    const std::array codes{trial.a, trial.b, trial.c};
    for (std::size_t k = 0; k < used; ++k) store(memory.operands(k) + index * bytes[k], bytes[k], codes[k]);
  }
  constexpr int unwritten = 0xa5;  // no exceptions have this code, and few results
  std::memset(memory.results(), unwritten, count * stored_bytes(instruction.result));
  std::memset(memory.exceptions(), unwritten, count * sizeof(Exceptions));
  return count;
}

bool has_judged_exceptions(const Domain& domain, std::uint32_t shard) {
  const std::vector<std::uint32_t> sampled = validation::sampled_shards(domain, usual_samples);
  return std::ranges::find(sampled, shard) != sampled.end();
}

std::vector<Outcome> expected_outcomes(const Instruction& instruction, std::uint32_t shard) {
  const auto count = static_cast<std::size_t>(instruction.domain->inputs_of(shard));
  std::vector<Outcome> expected(count);
  for (std::size_t index = 0; index < count; ++index)
    expected[index] =
        instruction.model(instruction.domain->at(shard, static_cast<std::uint32_t>(index)), instruction.mode);
  return expected;
}

std::vector<SharedShard> shared_shards(const std::vector<WantedShards>& rows) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto same = [&](const std::vector<std::size_t>& group) {
      return have_same_answers(*rows[group.front()].instruction, *rows[row].instruction);
    };
    auto group = std::ranges::find_if(groups, same);
    if (group == groups.end()) group = groups.insert(group, std::vector<std::size_t>());
    group->push_back(row);
  }
  std::vector<SharedShard> shared;
  for (const std::vector<std::size_t>& group : groups) {
    std::vector<std::pair<std::uint32_t, std::size_t>> by_shard;
    for (const std::size_t row : group) {
      for (const std::uint32_t shard : rows[row].shards) by_shard.emplace_back(shard, row);
    }
    std::ranges::sort(by_shard);
    const std::size_t earlier = shared.size();
    for (const auto& [shard, row] : by_shard) {
      if (shared.size() == earlier || shared.back().shard != shard)
        shared.push_back({.shard = shard, .rows = {}});
      shared.back().rows.push_back(row);
    }
  }
  return shared;
}

Judgement judge(const Instruction& instruction, std::uint32_t shard, const std::vector<Outcome>& expected,
                const ShardMemory& memory, bool with_exceptions, std::size_t most_differences) {
  Judgement judgement;
  validation::ResultDigest digest;
  const std::size_t bytes = stored_bytes(instruction.result);
  const auto lanes = static_cast<std::size_t>(instruction.lanes);
  for (std::size_t group = 0; group < expected.size(); group += lanes) {
    Exceptions wanted = 0;
    for (std::size_t lane = 0; lane < lanes; ++lane) wanted |= expected[group + lane].exceptions;
    const Exceptions raised = with_exceptions ? memory.exceptions()[group] : wanted;
    bool others_differ = raised != wanted;
    for (std::size_t index = group; index < group + lanes; ++index) {
      Outcome right = expected[index], found = right;
      found.value = load(memory.results() + index * bytes, bytes);
      digest.add(found.value ^ std::uint64_t{with_exceptions ? raised : Exceptions{}} << 56);
      judgement.result.documented += right.is_by_rule;
      if (found.value == right.value && !others_differ) continue;
      others_differ = false;
      ++judgement.result.mismatches;
      if (judgement.differences.size() == most_differences) continue;
      right.exceptions = wanted;
      found.exceptions = raised;
      const auto number = static_cast<std::uint32_t>(index);
      judgement.differences.push_back({.index = number,
                                       .operands = instruction.domain->at(shard, number),
                                       .found = found,
                                       .expected = right});
    }
  }
  judgement.result.digest = digest.value();
  return judgement;
}

}  // namespace experiments::validate_cpu
