#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <stdexcept>

#include "experiments/frame/interrupt.h"
#include "fp16/arithmetic.h"
#include "fp16/codec.h"
#include "fp16/reveal_order.h"
#include "fp16/sum.h"
#include "sim/tensor/random.h"
#include "tools/halflab/formats.h"
#include "tools/halflab/reveal/findings.h"

namespace halflab::reveal {
namespace {

using fp16::Bits;
using fp16::Format;

/// The tree's nodes in one format, one at a time from the left, or exactly and then rounded.
template <const Format& Node>
double evaluate(const fp16::SummationTree& tree, std::span<const double> terms, bool is_fused,
                fp16::Rounding rounding) {
  std::vector<Bits<Node>> codes;
  for (const double term : terms) codes.push_back(fp16::encode<Node>(term).bits);
  return double{fp16::decode<Node>(
      tree.evaluate(std::span<const Bits<Node>>(codes), [&](std::span<const Bits<Node>> children) {
        return is_fused ? fp16::sum_exact<Node>(children, {rounding}).bits
                        : fp16::sum_sequential<Node>(children, {rounding}).bits;
      }))};
}

struct Arithmetic {
  const char* name;
  const Format& node;
  double (*evaluate)(const fp16::SummationTree& tree, std::span<const double> terms, bool is_fused,
                     fp16::Rounding rounding);
  fp16::Rounding rounding = fp16::Rounding::nearest_even;
};

constexpr std::array arithmetics{
    Arithmetic{"binary16", fp16::binary16, evaluate<fp16::binary16>},
    Arithmetic{"bfloat16", fp16::bfloat16, evaluate<fp16::bfloat16>},
    Arithmetic{"binary32", fp16::binary32, evaluate<fp16::binary32>},
    Arithmetic{"binary32, truncated", fp16::binary32, evaluate<fp16::binary32>, fp16::Rounding::toward_zero},
    Arithmetic{"binary64", fp16::binary64, evaluate<fp16::binary64>},
};

double rounded_to(const fp16::NamedFormat& format, double value) {
  return with_format(format.format, [&]<const Format & F>() {
    return double{fp16::decode<F>(fp16::encode<F>(value).bits)};
  });
}

/// Numbers of the format of several magnitudes, so that every addition rounds.
std::vector<double> random_terms(const Options& options, const fp16::NamedFormat& format, int trial) {
  const sim::RandomStream stream(options.seed, fmt::format("reveal trial {}", trial));
  std::vector<double> terms(static_cast<std::size_t>(options.terms));
  for (std::size_t i = 0; i < terms.size(); ++i)
    terms[i] = rounded_to(
        format, std::ldexp(stream.normal(2 * i), static_cast<int>(std::fabs(stream.normal(2 * i + 1)) * -2)));
  return terms;
}

bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (a == 0 && b == 0) ||
         (std::isnan(a) && std::isnan(b));
}

/// An arithmetic of the nodes, and whether the sum is rounded to the box's format.
struct Candidate {
  const Arithmetic& arithmetic;
  bool is_rounded;
};

std::vector<Candidate> candidates_for(const Format& format) {
  std::vector<Candidate> candidates;
  for (const Arithmetic& arithmetic : arithmetics) candidates.push_back({arithmetic, true});
  for (const Arithmetic& arithmetic : arithmetics) {
    if (arithmetic.node != format && contains(arithmetic.node, format))
      candidates.push_back({arithmetic, false});
  }
  return candidates;
}

fp16::SummationTree tree_of(const Box& box, std::size_t terms, const fp16::NamedFormat& format,
                            experiments::Run& run) {
  experiments::Progress progress = run.progress("probe", terms * (terms - 1) / 2);
  const Box watched = [&](std::span<const double> values) {
    progress.tick();
    return box(values);
  };
  return fp16::reveal_order(watched, terms, fp16::masks_for(format.format));
}

/// Whether one of our orders sums by this tree. Each node is a node of the order, too, if the first leaves of its children
/// meet there below a node of as many leaves, for it holds these children whole, which are nodes of the order before it.
/// That takes a sum for each child, where revealing the order would take one for each pair of leaves.
bool is_summed_by(const fp16::SummationTree& tree, const std::string& order) {
  const Box box = order_box(order, {"binary64", fp16::binary64});
  const fp16::RevealMasks masks = fp16::masks_for(fp16::binary64);
  struct Part {
    std::size_t first, leaves;
  };
  std::vector<Part> nodes;
  const auto part_of = [&](std::size_t child) {
    return child < tree.leaves ? Part{child, 1} : nodes[child - tree.leaves];
  };
  std::vector<double> terms(tree.leaves, masks.one);
  const auto leaves_below = [&](std::size_t i, std::size_t j) {
    experiments::throw_if_interrupted();
    terms[i] = masks.large;
    terms[j] = -masks.large;
    const double counted = box(terms) / masks.one;
    terms[i] = terms[j] = masks.one;
    return static_cast<double>(tree.leaves) - counted;
  };
  for (const std::vector<std::size_t>& children : tree.nodes) {
    Part whole{part_of(children.front()).first, 0};
    for (const std::size_t child : children) whole.leaves += part_of(child).leaves;
    for (const std::size_t child : std::span(children).subspan(1)) {
      if (leaves_below(whole.first, part_of(child).first) != static_cast<double>(whole.leaves)) return false;
    }
    nodes.push_back(whole);
  }
  return true;
}

std::vector<std::string> orders_of(const fp16::SummationTree& tree, experiments::Run& run) {
  if (!tree.is_binary()) return {};  // all of ours are
  const std::vector<std::string> names = order_names();
  experiments::Progress progress = run.progress("known orders", names.size());
  std::vector<std::string> orders;
  for (const std::string& name : names) {
    if (is_summed_by(tree, name)) orders.push_back(name);
    progress.tick();
  }
  return orders;
}

void replay(const Options& options, const Box& box, experiments::Run& run, Findings& found) {
  const std::vector<Candidate> candidates = candidates_for(found.format.format);
  std::vector<Replay> replays;
  for (const auto& [arithmetic, is_rounded] : candidates)
    replays.push_back({.arithmetic = is_rounded ? arithmetic.name
                                                : fmt::format("{}, not rounded to {}", arithmetic.name,
                                                              found.format.name)});
  std::vector<std::vector<double>> results;
  std::vector<double> expected;
  experiments::Progress progress = run.progress("replay", static_cast<std::size_t>(options.trials));
  for (int trial = 0; trial < options.trials; ++trial) {
    const std::vector<double> terms = random_terms(options, found.format, trial);
    expected.push_back(box(terms));
    results.emplace_back();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const Arithmetic& arithmetic = candidates[i].arithmetic;
      const double value =
          arithmetic.evaluate(found.tree, terms, !found.tree.is_binary(), arithmetic.rounding);
      results.back().push_back(candidates[i].is_rounded ? rounded_to(found.format, value) : value);
      replays[i].equal += same(results.back().back(), expected.back());
    }
    progress.tick();
  }
  const auto best =
      static_cast<std::size_t>(std::ranges::max_element(replays, {}, &Replay::equal) - replays.begin());
  for (int trial = 0; trial < options.trials && replays[best].equal < options.trials; ++trial) {
    const double tree = results[static_cast<std::size_t>(trial)][best],
                 of_box = expected[static_cast<std::size_t>(trial)];
    if (same(tree, of_box)) continue;
    found.mismatch = {.trial = trial, .box = of_box, .tree = tree};
    break;
  }
  std::ranges::stable_sort(replays, std::greater(), &Replay::equal);
  found.replays = std::move(replays);
}

}  // namespace

Findings measure(const Options& options, experiments::Run& run) {
  const fp16::NamedFormat format =
      experiments::from_option("--dtype", [&] { return scalar_format(options.dtype); });
  if (!format.format.has_arithmetic())
    throw std::invalid_argument(fmt::format("--dtype: {} holds scales, which are not summed", format.name));
  const bool is_own = options.python.empty();
  if (!is_own && !options.order.empty())
    throw std::invalid_argument(
        "--order: is one of our own, and --python asks another; one of them is allowed");
  const std::string name = options.box();
  const Box box = is_own ? experiments::from_option("--order", [&] { return order_box(name, format); })
                         : python_box(options.interpreter, name, format);
  Findings found{.box = name, .format = format, .trials = options.trials};
  found.tree = tree_of(box, static_cast<std::size_t>(options.terms), format, run);
  found.known_as = orders_of(found.tree, run);
  replay(options, box, run, found);
  return found;
}

}  // namespace halflab::reveal
