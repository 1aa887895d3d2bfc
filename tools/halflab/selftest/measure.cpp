#include <algorithm>
#include <map>
#include <utility>

#include "experiments/frame/parallel.h"
#include "tools/halflab/selftest/findings.h"

namespace halflab::selftest {

std::string_view name_of(State state) {
  switch (state) {
    case State::equal:
      return "equal";
    case State::different:
      return "different";
    case State::missing:
      return "missing";
    case State::fresh:
      return "new";
    case State::not_run:
      break;
  }
  return "not run";
}

std::size_t Findings::count(State state) const {
  return static_cast<std::size_t>(std::ranges::count(rows, state, &HashRow::state));
}

std::size_t Findings::count(State state, std::string_view group) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      rows, [&](const HashRow& row) { return row.state == state && row.group == group; }));
}

std::vector<HashRow> measure(bool numbers_alone, experiments::Run& run) {
  std::vector<HashRow> found;
  std::vector<Row> rows;
  for (const Group& group : groups()) {
    if (numbers_alone && !group.is_of_numbers) continue;
    for (Row& row : group.rows()) {
      found.push_back({.group = std::string(group.name), .name = row.name, .state = State::fresh});
      rows.push_back(std::move(row));
    }
  }
  experiments::Progress progress = run.progress("hashing", rows.size());
  // From the last on: runs take longest, and none shall be waited for at the end.
  experiments::parallel_for_each(rows.size(), run.threads(), [&](std::size_t i) {
    HashRow& row = found[rows.size() - 1 - i];
    try {
      row.hash = rows[rows.size() - 1 - i].hash();
    } catch (const NotRun& reason) {
      row.state = State::not_run;
      row.obstacle = reason.what();
    }
    progress.tick();
  });
  return found;
}

Findings compare(std::vector<HashRow> rows, const HashTable& table, std::string against) {
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (std::size_t i = 0; i < rows.size(); ++i) places.emplace(std::pair(rows[i].group, rows[i].name), i);
  Findings found{.against = std::move(against), .version = table.version, .rows = std::move(rows)};
  const auto was_run = [&](const std::string& group) {
    const auto row = places.lower_bound({group, ""});
    return row != places.end() && row->first.first == group;
  };
  for (const HashEntry& entry : table.entries) {
    const auto place = places.find({entry.group, entry.name});
    if (place == places.end()) {
      if (was_run(entry.group))
        found.rows.push_back(
            {.group = entry.group, .name = entry.name, .expected = entry.hash, .state = State::missing});
      continue;
    }
    HashRow& row = found.rows[place->second];
    row.expected = entry.hash;
    if (row.hash) row.state = *row.hash == entry.hash ? State::equal : State::different;
  }
  return found;
}

}  // namespace halflab::selftest
