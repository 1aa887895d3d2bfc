#pragma once
/// The order of a sum as data: which terms are added first, and which sums then. Built by reveal_order.h.

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fp16 {

/// A tree whose leaves are the terms 0 .. leaves - 1. Each node adds its children at one time: two for a machine's
/// addition, more for a fused one, as in a tensor core. Addition commutes, so that the order of children says nothing; they
/// are listed by their first leaves.
struct SummationTree {
  std::size_t leaves = 0;
  /// The children of each node, in an order of computation: a child below `leaves` is a leaf, child leaves + k is node k. The
  /// last node is the whole sum. Empty for a single leaf.
  std::vector<std::vector<std::size_t>> nodes = {};

  bool operator==(const SummationTree&) const = default;

  bool is_binary() const {
    return std::ranges::all_of(nodes, [](const auto& children) { return children.size() == 2; });
  }

  /// The most additions that a term passes through.
  std::size_t depth() const {
    std::vector<std::size_t> depths(nodes.size());
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      for (const std::size_t child : nodes[k])
        depths[k] = std::max(depths[k], 1 + (child < leaves ? 0 : depths[child - leaves]));
    }
    return depths.empty() ? 0 : depths.back();
  }

  /// The sum in this order; `add` makes one number of the children's. Of no leaves: Number().
  template <class Number, class Add>
  Number evaluate(std::span<const Number> terms, Add&& add) const {
    if (leaves == 0) return Number();
    std::vector<Number> sums(nodes.size()), children;
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      children.clear();
      for (const std::size_t child : nodes[k])
        children.push_back(child < leaves ? terms[child] : sums[child - leaves]);
      sums[k] = add(std::span<const Number>(children));
    }
    return nodes.empty() ? terms[0] : sums.back();
  }

  /// "((0+1)+(2+3))".
  std::string text() const {
    std::vector<std::string> texts;
    const auto text_of = [&](std::size_t child) {
      return child < leaves ? std::to_string(child) : texts[child - leaves];
    };
    for (const auto& children : nodes) {
      std::string text = "(";
      for (const std::size_t child : children) {
        if (text.size() > 1) text += '+';
        text += text_of(child);
      }
      texts.push_back(std::move(text += ')'));
    }
    return leaves == 0 ? "" : nodes.empty() ? "0" : texts.back();
  }
};

}  // namespace fp16
