#pragma once
/// What `halflab reveal` finds of a black box.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/frame/experiment.h"
#include "fp16/summation_tree.h"
#include "tools/halflab/reveal/boxes.h"

namespace halflab::reveal {

struct Options {
  std::string python;  ///< MODULE:FUNCTION; empty: one of our own orders
  std::string interpreter = "python3";
  std::string order;  ///< of ours, where `python` is empty; empty: pairwise
  std::string dtype = "float32";
  int terms = 32;
  int trials = 100;
  std::uint64_t seed = 1;
  std::string to;  ///< a file for the tree; empty: none

  std::string box() const { return !python.empty() ? python : !order.empty() ? order : "pairwise"; }
};

/// An arithmetic of the tree's nodes, and how far it gives the box's bits.
struct Replay {
  std::string arithmetic;
  int equal = 0;  ///< trials
};

/// The first trial that no arithmetic explains.
struct Mismatch {
  int trial;
  double box, tree;  ///< by the arithmetic that is right most often
};

struct Findings {
  std::string box;
  fp16::NamedFormat format;
  fp16::SummationTree tree;
  std::vector<std::string> known_as;  ///< orders of ours with this tree
  int trials = 0;
  std::vector<Replay> replays;  ///< best first
  std::optional<Mismatch> mismatch;
};

/// Probes the box, then replays its tree on random numbers. Throws std::runtime_error where it has none.
Findings measure(const Options& options, experiments::Run& run);

experiments::Outputs outputs();
void report(experiments::Run& run, const Findings& found);
void draw_tree(experiments::Run& run, const Findings& found);

}  // namespace halflab::reveal
