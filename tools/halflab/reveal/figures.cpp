#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "experiments/frame/figure.h"
#include "tools/halflab/reveal/findings.h"

namespace halflab::reveal {
namespace {

using namespace experiments;

struct Point {
  double x = 0, y = 0;
};

/// Leaves side by side in the order in which the tree has them, nodes above the middle of their children.
std::vector<Point> places(const fp16::SummationTree& tree) {
  std::vector<Point> places(tree.leaves + tree.nodes.size());
  double next = 0;
  std::vector<std::size_t> open{places.size() - 1};  // depth first, the first child on top
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (node < tree.leaves) {
      places[node].x = next++;
    } else {
      const auto& children = tree.nodes[node - tree.leaves];
      open.insert(open.end(), children.rbegin(), children.rend());
    }
  }
  for (std::size_t k = 0; k < tree.nodes.size(); ++k) {
    Point& place = places[tree.leaves + k];
    double first = places[tree.nodes[k].front()].x, last = first;
    for (const std::size_t child : tree.nodes[k]) {
      first = std::min(first, places[child].x);
      last = std::max(last, places[child].x);
      place.y = std::max(place.y, places[child].y + 1);
    }
    place.x = (first + last) / 2;
  }
  return places;
}

}  // namespace

void draw_tree(Run& run, const Findings& found) {
  constexpr std::size_t most_named_leaves = 64;
  const fp16::SummationTree& tree = found.tree;
  const std::vector<Point> places = reveal::places(tree);
  Table& edges = run.record().table("edges", {"child", "x", "y", "parent_x", "parent_y"});
  for (std::size_t k = 0; k < tree.nodes.size(); ++k) {
    const Point& parent = places[tree.leaves + k];
    for (const std::size_t child : tree.nodes[k])
      edges.row({child < tree.leaves ? std::to_string(child) : "", places[child].x, places[child].y, parent.x,
                 parent.y});
  }
  const double last = static_cast<double>(std::max<std::size_t>(tree.leaves, 2)) - 1;
  std::string script = fmt::format(
      "unset key\nunset xtics\nunset grid\nset border 2\nset xrange [-1:{}]\nset yrange [-0.8:*]\nset ylabel "
      "\"additions\"\n"
      "plot \"edges.csv\" using "
      "\"x\":\"y\":(column(\"parent_x\")-column(\"x\")):(column(\"parent_y\")-column(\"y\")) with vectors "
      "nohead linecolor rgb blue",
      last + 1);
  if (tree.leaves <= most_named_leaves)
    script +=
        ", \\\n  \"edges.csv\" using \"x\":(column(\"y\") == 0 ? -0.4 : NaN):(strcol(\"child\")) with labels "
        "font ',10'";
  run.figure({.name = "tree",
              .title = fmt::format("The order in which {} sums {} numbers", found.box, tree.leaves),
              .caption = "The terms stand at the bottom, by their places; lines meet where sums are added.",
              .script = script + "\n",
              .width = static_cast<int>(std::clamp(18.0 * last + 120, 500.0, 1400.0))});
}

}  // namespace halflab::reveal
