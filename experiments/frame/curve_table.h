#pragma once
/// Curves of many steps, thinned to what a figure can show.

#include <cstddef>
#include <string>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/frame/figure.h"
#include "experiments/frame/record.h"

namespace experiments {

struct Point {
  double x;
  double y;
};

/// At most `most` of the points, in their order: the first, the last, and of each of equal stretches between them the
/// lowest and the highest, so that no peak is lost. Points whose y is not finite are kept only where a stretch has no
/// others. `most` is at least 4.
std::vector<Point> thinned(const std::vector<Point>& points, std::size_t most);

/// By how many per cent of its own the reference is exceeded: by the means over stretches, as single batches differ by more
/// than two runs do. The reference is cut into at most 50 stretches, as equal as can be; of the last one that the curve
/// reaches the steps count that both have made. A stretch with a loss that is not finite has no finite excess.
std::vector<Point> excess_percent(const std::vector<Point>& curve, const std::vector<Point>& reference);
/// How many of a run's steps a point stands for: ", each point the mean of 10 steps", or nothing where it is one.
std::string stretch_text(std::size_t steps);

/// The colour of the curve, counted from 0, in dashes that let those before be seen under it.
std::string line_style(std::size_t curve);

/// The table <name>.csv of a figure's curves, in which each is found by its number.
class CurveTable {
 public:
  static constexpr std::size_t most_points = 2000;

  CurveTable(RunRecord& record, std::string name);
  /// For --help.
  static TableNote note(std::string name);

  /// Writes the points, thinned, as the next curve; `what` says in the table what they are.
  Curve add(const std::string& what, const std::vector<Point>& points, std::string style,
            std::string title = {});

 private:
  std::string name_;
  Table& table_;
  std::size_t curves_ = 0;
};

}  // namespace experiments
