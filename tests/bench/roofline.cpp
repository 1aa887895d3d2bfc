#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/frame/figure.h"
#include "tests/bench/case.h"

namespace bench {
namespace {

constexpr double operations_of_multiply_add = 2;
constexpr double bytes_of_copied_float = 2 * sizeof(float);
/// Arrays of more bytes do not fit the caches.
constexpr double most_bytes_in_caches = 1 << 25;

bool is_in_memory(const Case& timed) {
  return timed.items * timed.bytes > most_bytes_in_caches;
}

struct Point {
  std::string name;
  std::string group;
  double intensity;   ///< operations per byte
  double operations;  ///< per second
  double roof;        ///< operations per second that bandwidth and arithmetic allow
};

/// A rate times what an item of it is; 0 where it was not measured.
double times(const Rates& rates, const std::string& name, double per_item) {
  const auto found = rates.find(name);
  return found == rates.end() ? 0 : found->second * per_item;
}

struct Roofs {
  double arithmetic;
  double cache;
  double memory;

  explicit Roofs(const Rates& rates)
      : arithmetic(times(rates, "peak_fma", operations_of_multiply_add)),
        cache(times(rates, "copy_floats", bytes_of_copied_float)),
        memory(times(rates, "copy_gradients", bytes_of_copied_float)) {}

  bool known() const { return arithmetic > 0 && cache > 0 && memory > 0; }
};

std::vector<Point> points_of(const std::vector<Case>& cases, const Rates& rates, const Roofs& roofs) {
  std::vector<Point> points;
  for (const Case& timed : cases) {
    if (timed.bytes == 0) continue;
    const double intensity = timed.operations / timed.bytes;
    const double bandwidth = is_in_memory(timed) ? roofs.memory : roofs.cache;
    points.push_back({.name = timed.name,
                      .group = timed.group,
                      .intensity = intensity,
                      .operations = rates.at(timed.name) * timed.operations,
                      .roof = std::min(bandwidth * intensity, roofs.arithmetic)});
  }
  return points;
}

const experiments::TableOf<Point> points_table{
    .name = "roofline",
    .rows = "each of our cases that reads and writes arrays",
    .columns = {{"case", "", &Point::name},
                {"group", "", &Point::group},
                {"operations_per_byte", "1/B", &Point::intensity},
                {"operations_per_second", "1/s", &Point::operations},
                {"roof", "1/s", &Point::roof},
                {"share_of_roof", "1", [](auto& p) { return p.operations / p.roof; }}}};

const experiments::SummaryOf<Roofs> roofs_summary{
    {{"roof.arithmetic", "operations per second of FP32 multiply-adds in registers, two each",
      &Roofs::arithmetic},
     {"roof.cache", "bytes per second, read and written, of a copy of 2^20 floats", &Roofs::cache},
     {"roof.memory", "the same of 2^24 floats", &Roofs::memory}}};

/// The lower of a bandwidth's slope and the arithmetic.
std::string roof(double bandwidth, double arithmetic, std::string_view style) {
  return fmt::format("smaller(x * {:.6g}, {:.6g}) with lines linecolor rgb grey linewidth 1.5 {}", bandwidth,
                     arithmetic, style);
}

std::string script_of(const Roofs& roofs, const std::vector<Point>& points) {
  std::string script = fmt::format(
      "set logscale xy\nset samples 2000\nset xrange [0.05:200]\nset yrange [{:.3g}:{:.3g}]\n"
      "set xlabel \"operations per byte\"\nset ylabel \"operations per second\"\nset format y "
      "\"10^{{%T}}\"\nset tmargin at screen 0.9\nset key at graph 0.42, graph 0.05 left bottom vertical "
      "maxcols 1\nsmaller(a, b) = a < "
      "b ? a : b\nplot {}, {}",
      std::ranges::min(points, {}, &Point::operations).operations / 2, 3 * roofs.arithmetic,
      roof(roofs.cache, roofs.arithmetic, "title \"bandwidth of caches, arithmetic\""),
      roof(roofs.memory, roofs.arithmetic, "dashtype 2 title \"bandwidth of memory\""));
  std::vector<std::string> groups;
  for (const Point& point : points) {
    if (groups.empty() || groups.back() != point.group) groups.push_back(point.group);
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    script += fmt::format(
        ", \"{}.csv\" using ({} ? column(\"operations_per_byte\") : NaN):(column(\"operations_per_second\")) "
        "with points linetype {} title {}",
        points_table.name, experiments::column_is("group", groups[i]), i + 1,
        experiments::gnuplot_string(groups[i]));
  }
  return script + "\n";
}

}  // namespace

experiments::Outputs roofline_outputs() {
  return experiments::outputs_of(points_table, roofs_summary);
}

void draw_roofline(experiments::Run& run, const std::vector<Case>& cases, const Rates& rates) {
  const Roofs roofs(rates);
  if (!roofs.known()) return;
  const std::vector<Point> points = points_of(cases, rates, roofs);
  points_table.write(run.record(), points);
  roofs_summary.write(run.record(), roofs);
  run.figure(
      {.name = "roofline",
       .title = "How near the arrays come to what the machine allows",
       .caption =
           "One core; an operation is one rounded result, a multiply-add two. Below the slope a case waits "
           "for its own arithmetic, for the bits that decide a rounding are not counted.",
       .script = script_of(roofs, points)});
}

}  // namespace bench
