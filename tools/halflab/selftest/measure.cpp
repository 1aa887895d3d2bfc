#include <algorithm>
#include <iterator>
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

namespace {

std::vector<HashRow> hash(std::string_view group, const Row& row) {
  HashRow none{.group = std::string(group), .name = row.name, .state = State::fresh};
  std::vector<HashRow> found;
  try {
    const Hashes hashes = row.hash();
    for (const auto& [name, hash] : hashes.all()) {
      found.push_back(none);
      found.back().hash = hash;
      if (!name.empty()) found.back().name += " " + name;
    }
  } catch (const NotRun& reason) {
    none.state = State::not_run;
    none.obstacle = reason.what();
    return {none};
  }
  return found;
}

}  // namespace

std::vector<HashRow> measure(bool numbers_alone, experiments::Run& run) {
  std::vector<std::pair<const Group*, Row>> rows;
  for (const Group& group : groups()) {
    if (numbers_alone && !group.is_of_numbers) continue;
    for (Row& row : group.rows()) rows.emplace_back(&group, std::move(row));
  }
  std::vector<std::vector<HashRow>> found(rows.size());
  experiments::Progress progress = run.progress("hashing", rows.size());
  // From the last on: runs take longest, and none shall be waited for at the end.
  experiments::parallel_for_each(rows.size(), run.threads(), [&](std::size_t i) {
    const std::size_t place = rows.size() - 1 - i;
    found[place] = hash(rows[place].first->name, rows[place].second);
    progress.tick();
  });
  std::vector<HashRow> all;
  for (std::vector<HashRow>& some : found) std::ranges::move(some, std::back_inserter(all));
  return all;
}

Findings compare(std::vector<HashRow> rows, const HashTable& table, std::string against) {
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (std::size_t i = 0; i < rows.size(); ++i) places.emplace(std::pair(rows[i].group, rows[i].name), i);
  Findings found{.against = std::move(against), .version = table.version, .rows = std::move(rows)};
  const auto was_run = [&](const HashEntry& entry) {
    const auto row = places.lower_bound({entry.group, ""});
    const bool has_group = row != places.end() && row->first.first == entry.group;
    return has_group && std::ranges::none_of(found.rows, [&](const HashRow& other) {
             return other.state == State::not_run && other.group == entry.group &&
                    entry.name.starts_with(other.name + " ");
           });
  };
  for (const HashEntry& entry : table.entries) {
    const auto place = places.find({entry.group, entry.name});
    if (place == places.end()) {
      if (was_run(entry))
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
