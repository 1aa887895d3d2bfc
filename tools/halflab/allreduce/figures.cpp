#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "experiments/frame/figure.h"
#include "tools/halflab/allreduce/findings.h"

namespace halflab::allreduce {
namespace {

using namespace experiments;

/// A name as a text, of which gnuplot makes no subscripts.
std::string words(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '_', ' ');
  return text;
}

std::vector<sim::AllReduceAlgorithm> orders_of(const Findings& found) {
  std::vector<sim::AllReduceAlgorithm> orders;
  for (const Reduced& kind : found.kinds)
    if (std::ranges::find(orders, kind.how.algorithm) == orders.end()) orders.push_back(kind.how.algorithm);
  return orders;
}

}  // namespace

void draw_figure(Run& run, const Findings& found) {
  const auto orders = orders_of(found);
  const std::size_t precisions = found.kinds.size() / orders.size();
  std::vector<double> errors;
  std::vector<Curve> curves;
  for (const Reduced& kind : found.kinds) errors.push_back(kind.loss.relative_error());
  for (std::size_t i = 0; i < precisions; ++i) {
    const std::string_view precision = sim::name_of(found.kinds[i].how.precision);
    curves.push_back(
        {.table = "allreduce",
         .where = column_is("precision", precision) + " && column('overflowed') == 0",
         .x = fmt::format("int(column(0) / {})", precisions),
         .y = "column('relative_error')",
         .style = fmt::format("with points pointtype {} pointsize 1.3 linetype {}", 5 + 2 * i, i + 1),
         .title = words(precision)});
  }
  std::vector<std::string> tics;
  for (std::size_t i = 0; i < orders.size(); ++i)
    tics.push_back(fmt::format("{} {}", gnuplot_string(words(sim::name_of(orders[i]))), i));
  std::string one_rounding;
  for (const Sent& format : found.sent) {
    const sim::TwinComparison& once = format.one_rounding;
    if (!found.is_asked(format) || once.nonfinite > 0 || !(once.relative_error() > 0)) continue;
    errors.push_back(once.relative_error());
    one_rounding += fmt::format(
        "set arrow from graph 0, first {0} to graph 1, first {0} nohead dashtype 2 linecolor rgb grey\n"
        "set label \"one rounding to {1}\" at graph 0.01, first {0} offset 0, -0.6 textcolor rgb grey\n",
        once.relative_error(), format.name);
  }
  run.figure({.name = "error",
              .title = "What each order and precision loses of the mean",
              .caption = "Error against the exact mean of the ranks' values. Dashed: the exact mean, rounded "
                         "once to what is sent. A mean that overflows has no point.",
              .script = fmt::format("set xrange [-0.5:{}]\nset xtics ({}) rotate by -20\nset bmargin 6\n",
                                    orders.size() - 0.5, fmt::join(tics, ", ")) +
                        log_axis(errors) + "set ylabel \"relative error\"\n" + one_rounding + plot(curves)});
}

}  // namespace halflab::allreduce
