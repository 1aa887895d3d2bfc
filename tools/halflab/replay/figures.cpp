#include <fmt/format.h>

#include "experiments/frame/figure.h"
#include "tools/halflab/replay/findings.h"

namespace halflab::replay {

using namespace experiments;

void draw_figures(Run& run, const Findings& found) {
  constexpr std::size_t most_replays = 7;
  std::vector<Curve> curves;
  std::vector<std::string> titles;
  for (const Replay& replay : found.replays) {
    if (curves.size() == most_replays) break;
    titles.push_back(replay.scaler);
    curves.push_back({.table = "steps",
                      .where = column_is("scaler", replay.scaler),
                      .x = "column('step')",
                      .y = "column('scale_log2')",
                      .style = fmt::format("with steps linetype {}", curves.size() + 1),
                      .title = replay.scaler});
  }
  const KeyColumn key(titles);
  run.figure(
      {.name = "scales",
       .title = "The loss scale that each scaler would have had",
       .caption = found.replays.size() > curves.size() ? fmt::format("The first {} of {} scalers are drawn.",
                                                                     curves.size(), found.replays.size())
                                                       : "Dynamic scalers halve S where a step overflows.",
       .script = key.script() +
                 "set xlabel \"step\"\nset ylabel \"log₂ of the loss scale S\"\nset offsets 0, 0, graph "
                 "0.05, graph 0.05\n" +
                 plot(curves),
       .width = key.figure_width()});
}

}  // namespace halflab::replay
