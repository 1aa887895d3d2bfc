#include "sim/trainer/revealed_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "fp16/bulk.h"
#include "fp16/reveal_order.h"
#include "sim/trainer/allreduce_arithmetic.h"

namespace sim {
namespace {

std::string joined(const std::vector<std::string>& texts, std::string_view between) {
  std::string all;
  for (const std::string& text : texts) all.append(all.empty() ? "" : between).append(text);
  return all;
}

/// The results of one question: equal ones of neighbours together.
struct Run {
  std::size_t end;
  double value;
};

std::vector<Run> runs_of(const std::vector<double>& results) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const bool goes_on = !runs.empty() && std::bit_cast<std::uint64_t>(runs.back().value) ==
                                              std::bit_cast<std::uint64_t>(results[i]);
    if (goes_on)
      runs.back().end = i + 1;
    else
      runs.push_back({i + 1, results[i]});
  }
  return runs;
}

/// Reads "((0+1)+2)".
class TreeReader {
 public:
  explicit TreeReader(std::string_view text) : text_(text) {}

  fp16::SummationTree tree() {
    const std::size_t root = node();
    if (!text_.empty() || (nodes_.empty() && root != 0)) refuse();
    fp16::SummationTree tree{.leaves = leaves_.size()};
    std::ranges::sort(leaves_);
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      if (leaves_[i] != i) refuse();
    }
    for (std::vector<std::size_t>& children : nodes_) {
      for (std::size_t& child : children) {
        if (child >= first_node) child = tree.leaves + (child - first_node);
      }
    }
    tree.nodes = std::move(nodes_);
    return tree;
  }

 private:
  /// Above all leaves, of which there are fewer on every machine.
  static constexpr std::size_t first_node = std::size_t{1} << 31;

  [[noreturn]] void refuse() const {
    throw std::invalid_argument(fmt::format("'{}' is not the order of a sum; must be as ((0+1)+2)", whole_));
  }
  bool take(char expected) {
    if (!text_.starts_with(expected)) return false;
    text_.remove_prefix(1);
    return true;
  }

  std::size_t node() {
    if (!take('(')) return leaf();
    if (++depth_ > 10000) refuse();
    std::vector<std::size_t> children{node()};
    while (take('+')) children.push_back(node());
    if (!take(')') || children.size() < 2) refuse();
    --depth_;
    nodes_.push_back(std::move(children));
    return first_node + nodes_.size() - 1;
  }
  std::size_t leaf() {
    std::size_t leaf = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), leaf);
    if (error != std::errc() || leaf >= first_node) refuse();
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    leaves_.push_back(leaf);
    return leaf;
  }

  std::string_view text_, whole_ = text_;
  std::vector<std::vector<std::size_t>> nodes_;
  std::vector<std::size_t> leaves_;
  int depth_ = 0;
};

/// Numbers of all magnitudes, infinities and NaNs among them, or of magnitudes that differ little, the same whoever draws
/// them.
class RandomNumbers {
 public:
  RandomNumbers(AllReducePrecision precision, std::uint64_t round, bool is_wide)
      : precision_(precision), round_(round), is_wide_(is_wide) {}

  std::vector<float> of(std::size_t rank, std::size_t begin, std::size_t end) const {
    std::vector<float> numbers;
    for (std::size_t i = begin; i < end; ++i)
      numbers.push_back(number(mixed(mixed(i * 8209 + rank) + round_)));
    return numbers;
  }

 private:
  /// SplitMix64.
  static std::uint64_t mixed(std::uint64_t key) {
    key = (key + 1) * 0x9e3779b97f4a7c15;
    key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9;
    key = (key ^ key >> 27) * 0x94d049bb133111eb;
    return key ^ key >> 31;
  }
  float number(std::uint64_t bits) const {
    const bool is_half = precision_ != AllReducePrecision::fp32;
    const auto code = static_cast<std::uint32_t>(bits);
    if (is_half) {
      const std::uint16_t exponent =
          is_wide_ ? code & 0x7c00 : static_cast<std::uint16_t>(10 + code % 4) << 10;
      const std::uint16_t half = (code & 0x8000) | exponent | (code >> 16 & 0x3ff);
      float value = 0;
      fp16::half_to_float(std::span(&half, 1), std::span(&value, 1));
      return value;
    }
    const std::uint32_t exponent = is_wide_ ? code & 0x7f800000 : (120 + code % 8) << 23;
    return std::bit_cast<float>((code & 0x80000000) | exponent |
                                static_cast<std::uint32_t>(bits >> 32 & 0x7fffff));
  }

  AllReducePrecision precision_;
  std::uint64_t round_;
  bool is_wide_;
};

void sum_over(Wire& wire, std::vector<float>& values, AllReducePrecision precision) {
  if (precision == AllReducePrecision::fp32) return wire.sum(values);
  std::vector<std::uint16_t> codes(values.size());
  fp16::float_to_half(values, codes);
  wire.sum(codes);
  fp16::half_to_float(codes, values);
}

bool are_same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

/// Where the carrier's sums of these numbers are not those of the order on this rank first.
std::optional<std::string> difference(Wire& wire, const RevealedOrder& order, AllReducePrecision precision,
                                      const RandomNumbers& random) {
  constexpr std::size_t block = std::size_t{1} << 16;
  std::vector<float> sums = random.of(wire.rank(), 0, order.elements());
  sum_over(wire, sums, precision);
  AllReduceArithmetic arithmetic({.precision = precision}, wire.ranks());
  std::size_t begin = 0;
  for (const auto& [piece_end, tree] : order.pieces) {
    while (begin < piece_end) {
      const std::size_t end = std::min(begin + block, piece_end);
      std::vector<std::vector<float>> terms;
      for (std::size_t rank = 0; rank < wire.ranks(); ++rank) terms.push_back(random.of(rank, begin, end));
      const std::vector<float> expected = sum_in_order(tree, terms, arithmetic);
      for (std::size_t i = begin; i < end; ++i) {
        if (!are_same(sums[i], expected[i - begin]))
          return fmt::format("element {} of {} is {} on rank {}, and {} in the order {}", i, order.elements(),
                             sums[i], wire.rank(), expected[i - begin], tree.text());
      }
      begin = end;
    }
  }
  return std::nullopt;
}

/// On all ranks, if on any.
[[noreturn]] void throw_no_order(AllReducePrecision precision, const std::string& what) {
  throw NoOrder(fmt::format("the MPI library's all-reduce is no sum in {} whose order is always the same: {}",
                            precision == AllReducePrecision::fp32 ? "binary32" : "binary16", what));
}

void hold_to_random_numbers(Wire& wire, const RevealedOrder& order, AllReducePrecision precision) {
  constexpr std::uint64_t narrow_rounds = 8, wide_rounds = 2;
  for (std::uint64_t round = 0; round < narrow_rounds + wide_rounds; ++round) {
    const std::optional<std::string> own =
        difference(wire, order, precision, {precision, round, round >= narrow_rounds});
    const std::vector<double> found = wire.gather(std::vector{own ? 1.0 : 0.0});
    const auto first = std::ranges::find(found, 1.0);
    if (first == found.end()) continue;
    throw_no_order(precision,
                   wire.broadcast(own.value_or(""), static_cast<std::size_t>(first - found.begin())));
  }
}

/// Rank 0 asks, and all answer together.
class Questions {
 public:
  Questions(Wire& wire, std::size_t elements, AllReducePrecision precision)
      : wire_(wire), elements_(elements), precision_(precision) {}

  std::vector<double> ask(std::span<const double> terms) {
    wire_.broadcast({reinterpret_cast<const char*>(terms.data()), terms.size_bytes()}, 0);
    return answer(terms);
  }
  void answer_all() {
    std::vector<double> terms(wire_.ranks());
    for (std::string asked = wire_.broadcast("", 0); !asked.empty(); asked = wire_.broadcast("", 0)) {
      std::memcpy(terms.data(), asked.data(), asked.size());
      answer(terms);
    }
  }
  void end() { wire_.broadcast("", 0); }

 private:
  std::vector<double> answer(std::span<const double> terms) {
    std::vector<float> values(elements_, static_cast<float>(terms[wire_.rank()]));
    sum_over(wire_, values, precision_);
    return {values.begin(), values.end()};
  }

  Wire& wire_;
  std::size_t elements_;
  AllReducePrecision precision_;
};

/// The trees of one of sim's own orders, an element in each of its chunks.
std::vector<std::string> trees_of(AllReduceAlgorithm algorithm, std::size_t workers) {
  const AllReduce how{.algorithm = algorithm, .precision = AllReducePrecision::fp32};
  const SumOfConstants sum = [&](std::span<const double> terms) {
    std::vector<std::vector<float>> shares;
    for (const double term : terms)
      shares.emplace_back(workers, static_cast<float>(term) * static_cast<float>(workers));
    const std::vector<std::span<const float>> views(shares.begin(), shares.end());
    const std::vector<float> mean = all_reduce_mean(views, how).values;
    return std::vector<double>(mean.begin(), mean.end());
  };
  std::vector<std::string> trees;
  for (const RevealedOrder::Piece& piece : reveal(sum, workers, workers, AllReducePrecision::fp32).pieces)
    trees.push_back(piece.tree.text());
  return trees;
}

}  // namespace

std::string RevealedOrder::text() const {
  std::vector<std::string> texts;
  std::size_t begin = 0;
  for (const auto& [end, tree] : pieces) {
    texts.push_back(fmt::format("{}-{}: {}", begin, end - 1, tree.text()));
    begin = end;
  }
  return joined(texts, "; ");
}

RevealedOrder revealed_order_from(const std::string& text) {
  RevealedOrder order;
  std::string_view rest = text;
  const auto number = [&](std::string_view behind) {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (error != std::errc() || !rest.starts_with(behind))
      throw std::invalid_argument(
          fmt::format("'{}' is not an order of sums; must be as 0-2: ((0+1)+2); 3-4: (0+(1+2))", text));
    rest.remove_prefix(behind.size());
    return value;
  };
  while (!rest.empty()) {
    const std::size_t begin = number("-"), last = number(": ");
    const std::string_view tree = rest.substr(0, rest.find("; "));
    order.pieces.push_back({last + 1, TreeReader(tree).tree()});
    const std::size_t expected = order.pieces.size() == 1 ? 0 : order.pieces[order.pieces.size() - 2].end;
    if (begin != expected || last < begin || order.pieces.back().tree.leaves != order.workers())
      throw std::invalid_argument(fmt::format(
          "'{}' is not an order of sums; elements and terms must follow each other from 0 on", text));
    rest.remove_prefix(std::min(rest.size(), tree.size() + 2));
  }
  return order;
}

const RevealedOrder& order_for(const RevealedOrders* orders, std::size_t workers, std::size_t elements) {
  if (orders == nullptr)
    throw std::invalid_argument(
        "all-reduce 'mpi': the order is the library's own, which is found by probing it; "
        "allowed: with --mpi, or with an order that was found");
  for (const RevealedOrder& order : orders->orders) {
    if (order.workers() == workers && order.elements() == elements) return order;
  }
  std::vector<std::string> found;
  for (const RevealedOrder& order : orders->orders)
    found.push_back(fmt::format("{} numbers of {} ranks each", order.elements(), order.workers()));
  throw std::invalid_argument(
      fmt::format("all-reduce 'mpi': no order was found for {} numbers of {} ranks each; allowed: {}",
                  elements, workers, found.empty() ? "none" : joined(found, ", ")));
}

std::vector<float> sum_in_order(const fp16::SummationTree& tree, std::span<const std::vector<float>> terms,
                                AllReduceArithmetic& arithmetic) {
  return tree.evaluate(terms, [&](std::span<const std::vector<float>> children) {
    std::vector<float> sum = children[0];
    for (const std::vector<float>& child : children.subspan(1)) arithmetic.add(sum, child);
    return sum;
  });
}

RevealedOrder reveal(const SumOfConstants& sum, std::size_t workers, std::size_t elements,
                     AllReducePrecision precision) {
  const fp16::RevealMasks masks =
      fp16::masks_for(precision == AllReducePrecision::fp32 ? fp16::binary32 : fp16::binary16);
  std::map<std::vector<double>, std::vector<Run>> answers;
  RevealedOrder order;
  for (std::size_t element = 0; element < elements;) {
    std::size_t end = elements;  // up to which all answers are this element's
    const auto answer = [&](std::span<const double> terms) {
      auto [asked, is_new] = answers.try_emplace({terms.begin(), terms.end()});
      if (is_new) asked->second = runs_of(sum(terms));
      const auto run = std::ranges::upper_bound(asked->second, element, {}, &Run::end);
      end = std::min(end, run->end);
      return run->value;
    };
    fp16::SummationTree tree = fp16::reveal_order(answer, workers, masks);
    if (!order.pieces.empty() && order.pieces.back().tree == tree)
      order.pieces.back().end = end;
    else
      order.pieces.push_back({end, std::move(tree)});
    element = end;
  }
  return order;
}

void require_carried(AllReducePrecision precision) {
  if (wire_format(precision) == fp16::bfloat16)
    throw std::invalid_argument(
        fmt::format("a carrier's sums in {}; allowed: fp16, fp32", name_of(precision)));
}

RevealedOrder reveal(Wire& wire, std::size_t elements, AllReducePrecision precision) {
  require_carried(precision);
  Questions questions(wire, elements, precision);
  std::string found, problem;
  if (wire.rank() == 0) {
    try {
      const SumOfConstants ask = [&](std::span<const double> terms) { return questions.ask(terms); };
      found = reveal(ask, wire.ranks(), elements, precision).text();
    } catch (const fp16::NotATree& error) {
      problem = error.what();
    }
    questions.end();
  } else {
    questions.answer_all();
  }
  problem = wire.broadcast(problem, 0);
  if (!problem.empty()) throw_no_order(precision, problem);
  const RevealedOrder order = revealed_order_from(wire.broadcast(found, 0));
  hold_to_random_numbers(wire, order, precision);
  return order;
}

std::string known_names(const RevealedOrder& order) {
  std::vector<std::string> found;
  for (const RevealedOrder::Piece& piece : order.pieces) {
    const std::string text = piece.tree.text();
    if (std::ranges::find(found, text) == found.end()) found.push_back(text);
  }
  std::vector<std::string> names;
  for (const AllReduceAlgorithm algorithm : all_reduce_algorithms) {
    if (trees_of(algorithm, order.workers()) == found) names.emplace_back(name_of(algorithm));
  }
  return names.empty() ? "another" : joined(names, ", ");
}

}  // namespace sim
