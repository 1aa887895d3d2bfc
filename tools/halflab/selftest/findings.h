#pragma once
/// What `halflab selftest` finds.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/experiment.h"
#include "tools/halflab/selftest/groups.h"
#include "tools/halflab/selftest/hash_table.h"

namespace halflab::selftest {

/// How a hash stands to the one it is compared with.
enum class State {
  equal,
  different,
  missing,  ///< there is one to compare with, and this build has no such result
  fresh,    ///< there is none to compare with
  not_run
};
std::string_view name_of(State state);

struct HashRow {
  std::string group, name;
  std::optional<std::uint64_t> hash, expected;
  State state;
  std::string obstacle = {};  ///< why it was not run
};

struct Findings {
  std::string against;  ///< "Halflab 1.0.0"
  std::string version;  ///< of the Halflab that it is compared with
  std::vector<HashRow> rows;

  std::size_t count(State state) const;
  std::size_t count(State state, std::string_view group) const;
  std::size_t compared() const { return count(State::equal) + count(State::different); }
  bool holds() const { return count(State::different) + count(State::missing) == 0 && compared() > 0; }
};

/// The hashes of all groups, or of those of numbers alone, not yet compared.
std::vector<HashRow> measure(bool numbers_alone, experiments::Run& run);

/// What was found of the groups that were run.
Findings compare(std::vector<HashRow> rows, const HashTable& table, std::string against);

experiments::Outputs outputs();
void report(experiments::Run& run, const Findings& found);

}  // namespace halflab::selftest
