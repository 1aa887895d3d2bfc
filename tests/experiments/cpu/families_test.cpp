/// What every family of instructions must bring.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "experiments/cpu/instructions/family.h"
#include "experiments/cpu/instructions/shard_trials.h"

using namespace experiments::validate_cpu;

TEST_CASE(
    "CPU families: rows have names of their own, whole groups of lanes, and a domain that fits into memory") {
  for (const Family& family : families()) {
    INFO(family.name);
    std::set<std::string> names;
    for (const Instruction& row : family.instructions()) {
      INFO(row.name);
      CHECK(names.insert(row.name).second);
      CHECK(!row.group.empty());
      CHECK(row.domain->shard_size <= ShardMemory::most_trials);
      CHECK(row.domain->shard_size % static_cast<std::uint64_t>(row.lanes) == 0);
    }
    CHECK(names.size() > 20);
  }
}

TEST_CASE("CPU families: where a row gives other than the software half, it says by which rule") {
  for (const Family& family : families()) {
    INFO(family.name);
    for (const Instruction& row : family.instructions()) {
      if (!row.rule.empty()) continue;
      INFO(row.name);
      const std::uint32_t shard = experiments::validation::sampled_shards(*row.domain, 1).front();
      CHECK(std::ranges::none_of(expected_outcomes(row, shard), &Outcome::is_by_rule));
    }
  }
}
