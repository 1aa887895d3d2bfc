#include <fmt/format.h>

#include <algorithm>

#include "experiments/frame/figure.h"
#include "tools/halflab/replay/findings.h"

namespace halflab::replay {
namespace {

using namespace experiments;

/// Replays with the same S at every step, by the first of them.
struct Group {
  const Replay* first;
  std::size_t count = 1;

  std::string title() const {
    constexpr std::size_t most_characters = 34;
    const std::string& name = first->scaler;
    const std::string shown = name.size() > most_characters ? name.substr(0, most_characters) + "…" : name;
    return count == 1 ? shown : fmt::format("{} and {} more", shown, count - 1);
  }
};

std::vector<Group> groups_of(const std::vector<Replay>& replays) {
  std::vector<Group> groups;
  for (const Replay& replay : replays) {
    if (!replay.is_told()) continue;
    const auto is_same = [&](const Group& group) {
      return std::ranges::equal(group.first->steps, replay.steps, {}, &ReplayedStep::scale,
                                &ReplayedStep::scale);
    };
    const auto group = std::ranges::find_if(groups, is_same);
    if (group == groups.end())
      groups.push_back({&replay});
    else
      ++group->count;
  }
  return groups;
}

}  // namespace

void draw_figures(Run& run, const Findings& found) {
  const std::vector<Group> groups = groups_of(found.replays);
  if (groups.empty()) return;
  std::vector<Curve> curves;
  std::vector<std::string> titles;
  for (const Group& group : groups) {
    if (curves.size() == most_curves) break;
    titles.push_back(group.title());
    curves.push_back({.table = "steps",
                      .where = column_is("scaler", group.first->scaler),
                      .x = "column('step')",
                      .y = "column('scale_log2')",
                      .style = fmt::format("with steps linetype {}", curves.size() + 1),
                      .title = titles.back()});
  }
  std::string caption =
      "Dynamic scalers halve S where a step overflows. Scalers with the same S at every step share a curve.";
  if (groups.size() > curves.size())
    caption += fmt::format(" The first {} of {} curves are drawn.", curves.size(), groups.size());
  const KeyColumn key(titles);
  run.figure(
      {.name = "scales",
       .title = "The loss scale that each scaler would have had",
       .caption = caption,
       .script = key.script() +
                 "set xlabel \"step\"\nset ylabel \"log₂ of the loss scale S\"\nset offsets 0, 0, graph "
                 "0.05, graph 0.05\n" +
                 plot(curves),
       .width = key.figure_width()});
}

}  // namespace halflab::replay
