#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/frame/columns.h"
#include "experiments/frame/text_table.h"
#include "tools/halflab/reveal/findings.h"

namespace halflab::reveal {
namespace {

using namespace experiments;

const TableOf<Replay> replays_table{
    .name = "arithmetics",
    .rows = "each arithmetic of the tree's additions",
    .columns = {{"arithmetic", "", [](auto& row) { return row.arithmetic; }},
                {"equal_trials", "trials", [](auto& row) { return row.equal; }}}};

std::string known_as(const Findings& found) {
  return found.known_as.empty() ? "none" : fmt::format("{}", fmt::join(found.known_as, ", "));
}

bool is_explained(const Findings& found) {
  return found.trials > 0 && !found.replays.empty() && found.replays.front().equal == found.trials;
}

const SummaryOf<Findings> summary{
    {{"terms", "summed", [](const Findings& found) { return found.tree.leaves; }},
     {"tree", "nested sums of the terms' numbers", [](const Findings& found) { return found.tree.text(); }},
     {"depth", "the most additions that a term passes through",
      [](const Findings& found) { return found.tree.depth(); }},
     {"widest_node", "the most terms added at one time",
      [](const Findings& found) {
        std::size_t widest = 0;
        for (const auto& children : found.tree.nodes) widest = std::max(widest, children.size());
        return widest;
      }},
     {"known_as", "orders of ours with this tree, or \"none\"", known_as},
     {"arithmetic", "of the additions, that gives all bits of the trials, or \"none\"",
      [](const Findings& found) { return is_explained(found) ? found.replays.front().arithmetic : "none"; }},
     {"trials", "random inputs", [](const Findings& found) { return found.trials; }}}};

std::string shape_sentence(const Findings& found) {
  const std::size_t terms = found.tree.leaves;
  const std::string summed = fmt::format("{} sums {} numbers of {}", found.box, terms, found.format.name);
  if (!found.known_as.empty()) return fmt::format("{} in the order \"{}\".", summed, found.known_as.front());
  if (found.tree.nodes.size() == 1 && terms > 2)
    return fmt::format("{} at one time, or keeps more digits than the probe can exceed.", summed);
  return fmt::format("{} in a tree of depth {} that is none of our named orders.", summed,
                     found.tree.depth());
}

std::string arithmetic_sentence(const Findings& found) {
  if (found.trials == 0) return "No random input was tried (--trials).";
  std::vector<std::string> right;
  for (const Replay& replay : found.replays) {
    if (replay.equal == found.trials) right.push_back(replay.arithmetic);
  }
  if (!right.empty())
    return fmt::format("The tree, added in {}, gives every bit of {} random inputs.",
                       fmt::join(right, " or in "), found.trials);
  return fmt::format(
      "Which arithmetic adds cannot be told: {} is nearest, with {} of {} random inputs; at the first other "
      "one the box gives {} and the tree {}.",
      found.replays.front().arithmetic, found.replays.front().equal, found.trials, found.mismatch->box,
      found.mismatch->tree);
}

}  // namespace

Outputs outputs() {
  Outputs outputs = outputs_of(replays_table, summary);
  outputs.tables.push_back(
      {.name = "edges",
       .rows = "each line of the tree's figure",
       .columns =
           {{"child", "", ""}, {"x", "1", ""}, {"y", "1", ""}, {"parent_x", "1", ""}, {"parent_y", "1", ""}},
       .when = "--out"});
  return outputs;
}

void report(Run& run, const Findings& found) {
  replays_table.write(run.record(), found.replays);
  summary.write(run.record(), found);
  if (run.draws()) draw_tree(run, found);
  run.record().verdict(shape_sentence(found) + " " + arithmetic_sentence(found));
  constexpr std::size_t most_leaves_in_text = 64;
  if (found.tree.leaves <= most_leaves_in_text) run.record().verdict(found.tree.text());
}

}  // namespace halflab::reveal
