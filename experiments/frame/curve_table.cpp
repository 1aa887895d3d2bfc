#include "experiments/frame/curve_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

namespace experiments {
namespace {

constexpr std::size_t most_stretches = 50;

/// Adds the lowest and the highest of the stretch as they come, or of a stretch without a finite y its first point.
void add_extremes(std::vector<Point>& kept, std::span<const Point> stretch) {
  const Point *lowest = nullptr, *highest = nullptr;
  for (const Point& point : stretch) {
    if (!std::isfinite(point.y)) continue;
    if (lowest == nullptr || point.y < lowest->y) lowest = &point;
    if (highest == nullptr || point.y > highest->y) highest = &point;
  }
  if (lowest == nullptr) lowest = highest = &stretch.front();
  if (highest < lowest) std::swap(lowest, highest);
  kept.push_back(*lowest);
  if (highest != lowest) kept.push_back(*highest);
}

struct CurvePoint {
  std::size_t curve;
  const std::string& what;
  Point point;
};

const TableOf<CurvePoint> curve_table{
    .name = "",
    .rows = "each point of the figure's curves",
    .columns = {{"curve", "", &CurvePoint::curve},
                {"what", "", [](const CurvePoint& p) { return p.what; }},
                {"step", "steps", [](const CurvePoint& p) { return p.point.x; }},
                {"value", "the curve's", [](const CurvePoint& p) { return p.point.y; }}}};

}  // namespace

std::vector<Point> thinned(const std::vector<Point>& points, std::size_t most) {
  if (points.size() <= most) return points;
  const std::span<const Point> between = std::span(points).subspan(1, points.size() - 2);
  const std::size_t stretches = (most - 2) / 2;
  std::vector<Point> kept{points.front()};
  for (std::size_t i = 0; i < stretches; ++i) {
    const std::size_t begin = i * between.size() / stretches, end = (i + 1) * between.size() / stretches;
    add_extremes(kept, between.subspan(begin, end - begin));
  }
  kept.push_back(points.back());
  return kept;
}

std::vector<Point> excess_percent(const std::vector<Point>& curve, const std::vector<Point>& reference) {
  const std::size_t steps = reference.size(), stretches = std::min(steps, most_stretches);
  std::vector<Point> excess;
  for (std::size_t i = 0; i < stretches && i * steps / stretches < curve.size(); ++i) {
    double x = 0, of_curve = 0, of_reference = 0;
    const std::size_t begin = i * steps / stretches,
                      end = std::min((i + 1) * steps / stretches, curve.size());
    for (std::size_t step = begin; step < end; ++step) {
      x += curve[step].x;
      of_curve += curve[step].y;
      of_reference += reference[step].y;
    }
    excess.push_back({x / static_cast<double>(end - begin), 100 * (of_curve / of_reference - 1)});
  }
  return excess;
}

std::string stretch_text(std::size_t steps) {
  const std::size_t shortest = steps / most_stretches;
  if (steps <= most_stretches) return {};
  return fmt::format(", each point the mean of {}{} steps", shortest,
                     steps % most_stretches == 0 ? "" : fmt::format(" or {}", shortest + 1));
}

std::string line_style(std::size_t curve) {
  constexpr std::array dash_types{1, 2, 4, 5};  // solid, and what is not lost on a thin line
  return fmt::format("linetype {} linewidth 1.3 dashtype {}", curve + 1,
                     dash_types[curve % dash_types.size()]);
}

CurveTable::CurveTable(RunRecord& record, std::string name)
    : name_(std::move(name)), table_(record.table(name_, curve_table.header())) {}

TableNote CurveTable::note(std::string name) {
  TableNote note = curve_table.note();
  note.name = std::move(name);
  return note;
}

Curve CurveTable::add(const std::string& what, const std::vector<Point>& points, std::string style,
                      std::string title) {
  ++curves_;
  for (const Point& point : thinned(points, most_points))
    table_.row(curve_table.cells({curves_, what, point}));
  return {.table = name_,
          .where = fmt::format("column('curve') == {}", curves_),
          .x = "column('step')",
          .y = "column('value')",
          .style = std::move(style),
          .title = std::move(title)};
}

}  // namespace experiments
