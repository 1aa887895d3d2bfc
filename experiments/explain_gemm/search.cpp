#include "experiments/explain_gemm/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "experiments/explain_gemm/evidence.h"
#include "experiments/explain_gemm/prediction.h"
#include "experiments/frame/parallel.h"
#include "fp16/classification.h"
#include "sim/tensor/random.h"

namespace experiments::explain_gemm {
namespace {

constexpr std::array<std::size_t, 5> sample_sides{16, 32, 64, 128, 256};
// About a second's work: so little is not worth a sample.
constexpr double products_at_once = 4e9;
constexpr std::size_t least_runners_up = 8;
constexpr std::size_t most_imperfect = 64;
// A part is of so many rows at most, and of so many outputs, of which each slice has a sum.
constexpr std::size_t most_part_rows = 128, most_part_outputs = std::size_t{1} << 17;
// What each sample may drop of the expected chance survivors: a fiftieth of what an explanation may have.
constexpr double most_dropped = 0.02 * most_chance_survivors;

using Indices = std::vector<std::size_t>;

Indices all_below(std::size_t count) {
  Indices all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

/// One of each of `wanted` equal stretches, at random: regular ones could all be of one place in a tile.
Indices sampled(std::size_t count, std::size_t wanted, std::string_view purpose) {
  if (wanted >= count) return all_below(count);
  const sim::RandomStream stream(0, purpose);
  Indices indices;
  for (std::size_t i = 0; i < wanted; ++i) {
    const std::size_t first = i * count / wanted, next = (i + 1) * count / wanted;
    indices.push_back(first + stream.below(i, next - first));
  }
  return indices;
}

std::size_t part_rows(std::size_t columns) {
  return std::clamp(most_part_outputs / std::max(columns, std::size_t{1}), std::size_t{1}, most_part_rows);
}

std::vector<Part> whole(const Problem& problem) {
  return cut(problem, all_below(problem.rows), all_below(problem.columns), part_rows(problem.columns));
}

/// Hypotheses with the same sums of slices, which are computed once for all of them.
using Group = Indices;

std::vector<Group> groups_of(const std::vector<Tried>& tried, const Indices& alive) {
  std::map<PartialsKey, std::size_t> places;
  std::vector<Group> groups;
  for (const std::size_t index : alive) {
    const auto [place, is_new] = places.try_emplace(partials_key(tried[index].hypothesis), groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(index);
  }
  return groups;
}

void hold_against(const Problem& problem, const Part& part, const Partials& partials, Tried& tried) {
  const std::vector<std::uint32_t> codes = predicted(problem, part, tried.hypothesis, partials);
  tried.outputs = codes.size();
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (explains(problem.d.format, codes[i], part.d[i])) {
      ++tried.explained;
      continue;
    }
    const std::size_t columns = part.columns.size();
    if (!tried.first_unexplained)
      tried.first_unexplained = part.rows[i / columns] * problem.columns + part.columns[i % columns];
    if (part.is_new(i)) ++tried.misses;
  }
}

struct Stage {
  const Problem& problem;
  const std::vector<Part>& parts;
  const Run& run;
};

/// Sets the results of the hypotheses `alive` to those over the parts.
void hold_against(const Stage& stage, const Indices& alive, std::vector<Tried>& tried) {
  const std::vector<Group> groups = groups_of(tried, alive);
  const std::size_t tasks = groups.size() * stage.parts.size();
  std::vector<std::vector<Tried>> results(tasks);
  Progress progress = stage.run.progress(fmt::format("{} hypotheses", alive.size()), tasks);
  parallel_for_each(tasks, stage.run.threads(), [&](std::size_t task) {
    const Group& group = groups[task / stage.parts.size()];
    const Part& part = stage.parts[task % stage.parts.size()];
    const Partials partials = partial_sums(stage.problem, part, tried[group.front()].hypothesis);
    for (const std::size_t index : group) {
      Tried& result = results[task].emplace_back(Tried{.hypothesis = tried[index].hypothesis});
      hold_against(stage.problem, part, partials, result);
    }
    progress.tick();
  });
  for (const std::size_t index : alive) tried[index] = {.hypothesis = tried[index].hypothesis};
  for (std::size_t task = 0; task < tasks; ++task) {
    const Group& group = groups[task / stage.parts.size()];
    for (std::size_t i = 0; i < group.size(); ++i) {
      Tried& total = tried[group[i]];
      const Tried& result = results[task][i];
      total.outputs += result.outputs;
      total.explained += result.explained;
      total.misses += result.misses;
      if (!total.first_unexplained) total.first_unexplained = result.first_unexplained;
    }
  }
}

/// A tensor core's name claims more than a chain's.
void sort_by_unexplained(const std::vector<Tried>& tried, Indices& indices) {
  std::ranges::stable_sort(indices, {}, [&](std::size_t index) {
    return std::pair(tried[index].unexplained(), !tried[index].hypothesis.accumulator->is_chain());
  });
}

std::size_t count_with(const std::vector<Tried>& tried, const Indices& indices, std::size_t unexplained) {
  return static_cast<std::size_t>(std::ranges::count_if(
      indices, [&](std::size_t index) { return tried[index].unexplained() == unexplained; }));
}

/// How many of the indices, which are sorted, stay: all but the last, as long as chance hardly lets one of these
/// survive all outputs. Those that miss nothing stay.
std::size_t count_probable(const std::vector<Tried>& tried, const Indices& sorted, std::size_t outputs) {
  std::size_t kept = sorted.size();
  double dropped = 0;
  while (tried[sorted[kept - 1]].unexplained() > 0) {
    dropped += chance_of_no_miss(tried[sorted[kept - 1]], outputs);
    if (dropped > most_dropped) break;
    --kept;
  }
  return kept;
}

/// The hypotheses that explain the whole sample, and their nearest rivals. Where nothing explains it the best, ties
/// included as far as they are not too many, and a few runners-up: wrong outputs in a sample may hit its hypotheses
/// unequally.
void keep_best(const std::vector<Tried>& tried, Indices& alive, std::size_t outputs) {
  sort_by_unexplained(tried, alive);
  const std::size_t least = tried[alive.front()].unexplained();
  const std::size_t kept =
      least == 0 ? count_probable(tried, alive, outputs)
                 : std::clamp(count_with(tried, alive, least), least_runners_up, most_imperfect);
  alive.resize(std::min(alive.size(), kept));
  std::ranges::sort(alive);
}

double products(const Problem& problem, std::size_t count) {
  return static_cast<double>(problem.outputs()) * static_cast<double>(problem.depth) *
         static_cast<double>(count);
}

}  // namespace

bool explains(const fp16::Format& format, std::uint32_t predicted, std::uint32_t observed) {
  if (predicted == observed) return true;
  return std::isnan(value_of(format, predicted)) && std::isnan(value_of(format, observed));
}

double chance_of_no_miss(const Tried& tried, std::size_t outputs) {
  const auto seen = static_cast<double>(tried.outputs), others = static_cast<double>(outputs);
  return std::pow(seen / (seen + others / 2), static_cast<double>(tried.misses) + 1);
}

std::size_t Explanation::candidates() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(verified, [&](std::size_t index) { return tried[index].unexplained() == 0; }));
}

Explanation explain(const Problem& problem, const SearchOptions& options, const Run& run) {
  Explanation found;
  for (const Hypothesis& hypothesis : hypotheses(problem, static_cast<std::size_t>(options.most_slices)))
    found.tried.push_back({.hypothesis = hypothesis});
  Indices alive = all_below(found.tried.size());
  const auto is_cheap = [&] {
    return products(problem, groups_of(found.tried, alive).size()) <= products_at_once;
  };
  for (const std::size_t side : sample_sides) {
    if (is_cheap() || (side >= problem.rows && side >= problem.columns)) break;
    const std::vector<Part> parts =
        cut(problem, sampled(problem.rows, side, "explain_gemm rows"),
            sampled(problem.columns, side, "explain_gemm columns"), most_part_rows);
    hold_against({problem, parts, run}, alive, found.tried);
    keep_best(found.tried, alive, problem.outputs());
  }
  const bool has_sample = found.tried.front().outputs > 0;
  if (has_sample && !is_cheap()) {
    sort_by_unexplained(found.tried, alive);
    const std::size_t perfect = count_with(found.tried, alive, 0);
    const std::size_t most = perfect > 0 ? static_cast<std::size_t>(options.most_verified) : least_runners_up;
    if (perfect > most) found.not_refuted = perfect - most;
    alive.resize(std::min(alive.size(), most));
  }
  hold_against({problem, whole(problem), run}, alive, found.tried);
  sort_by_unexplained(found.tried, alive);
  found.verified = alive;
  return found;
}

std::vector<std::uint32_t> predicted(const Problem& problem, const Hypothesis& hypothesis, const Run& run) {
  const std::vector<Part> parts = whole(problem);
  std::vector<std::vector<std::uint32_t>> codes(parts.size());
  parallel_for_each(parts.size(), run.threads(), [&](std::size_t i) {
    codes[i] = predicted(problem, parts[i], hypothesis, partial_sums(problem, parts[i], hypothesis));
  });
  std::vector<std::uint32_t> all;
  for (const std::vector<std::uint32_t>& part : codes) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace experiments::explain_gemm
