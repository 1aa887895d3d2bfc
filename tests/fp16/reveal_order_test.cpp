#include "fp16/reveal_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "fp16/codec.h"
#include "fp16/mma.h"
#include "fp16/sum.h"

namespace {

using namespace fp16;
using Terms = std::span<const double>;

/// A tree of nodes with up to `arity` children.
SummationTree random_tree(std::size_t leaves, std::size_t arity, std::mt19937& random) {
  SummationTree tree{.leaves = leaves};
  std::vector<std::size_t> live(leaves);
  for (std::size_t i = 0; i < leaves; ++i) live[i] = i;
  while (live.size() > 1) {
    std::ranges::shuffle(live, random);
    const std::size_t count = std::min(live.size(), 2 + random() % (arity - 1));
    tree.nodes.emplace_back(live.end() - static_cast<std::ptrdiff_t>(count), live.end());
    live.resize(live.size() - count);
    live.push_back(leaves + tree.nodes.size() - 1);
  }
  return tree;
}

/// The leaves below each node: what a tree is, whatever the order of its lists.
std::set<std::set<std::size_t>> sets_of(const SummationTree& tree) {
  std::vector<std::set<std::size_t>> below(tree.nodes.size());
  for (std::size_t k = 0; k < tree.nodes.size(); ++k) {
    for (const std::size_t child : tree.nodes[k]) {
      if (child < tree.leaves) {
        below[k].insert(child);
      } else {
        below[k].insert(below[child - tree.leaves].begin(), below[child - tree.leaves].end());
      }
    }
  }
  return {below.begin(), below.end()};
}

/// Keeps what is at least 2^-20 of the largest, as fused adders with so many bits do.
float fused(std::span<const float> terms) {
  float largest = 0;
  for (const float term : terms) largest = std::max(largest, std::fabs(term));
  double sum = 0;
  for (const float term : terms) sum += std::fabs(term) >= 0x1p-20f * largest ? term : 0;
  return static_cast<float>(sum);
}

template <const Format& F, class Function>
auto in_format(Function function) {
  return [function](Terms terms) {
    std::vector<Bits<F>> codes;
    for (const double term : terms) codes.push_back(encode<F>(term).bits);
    return decode<F>(function(std::span<const Bits<F>>(codes)).bits);
  };
}

}  // namespace

TEST_CASE("reveal_order: planted trees of 1 to 512 leaves, binary and fused, are found") {
  std::mt19937 random(1);
  for (const std::size_t leaves : {1, 2, 3, 5, 16, 77, 200, 512}) {
    for (const std::size_t arity : {2, 3, 8, 17}) {
      CAPTURE(leaves);
      CAPTURE(arity);
      const SummationTree planted = random_tree(leaves, arity, random);
      const auto sum = [&](Terms terms) {
        const std::vector<float> floats(terms.begin(), terms.end());
        return double{planted.evaluate(std::span(floats), fused)};
      };
      const SummationTree found = reveal_order(sum, leaves, masks_for(binary32));
      CHECK(sets_of(found) == sets_of(planted));
      CHECK(found.depth() == planted.depth());
    }
  }
}

TEST_CASE("reveal_order: our own orders have the trees that they are described by") {
  const auto sequential = in_format<binary16>([](auto codes) { return sum_sequential<binary16>(codes); });
  CHECK(reveal_order(sequential, 5, masks_for(binary16)).text() == "((((0+1)+2)+3)+4)");
  const auto pairwise = in_format<bfloat16>([](auto codes) { return sum_pairwise<bfloat16>(codes); });
  CHECK(reveal_order(pairwise, 7, masks_for(bfloat16)).text() == "(((0+1)+(2+3))+((4+5)+6))");
  const auto blocked = in_format<binary32>([](auto codes) { return sum_blocked_tree<binary32, 4>(codes); });
  CHECK(reveal_order(blocked, 8, masks_for(binary32)).text() == "(((0+2)+(1+3))+((4+6)+(5+7)))");
}

TEST_CASE("reveal_order: sums longer than a format counts are asked for in blocks") {
  const auto pairwise = in_format<bfloat16>([](auto codes) { return sum_pairwise<bfloat16>(codes); });
  const SummationTree tree = reveal_order(pairwise, 1000, masks_for(bfloat16));  // 2^8 ones at a time
  const auto exact = in_format<binary64>([](auto codes) { return sum_pairwise<binary64>(codes); });
  CHECK(tree == reveal_order(exact, 1000, masks_for(binary64)));
  const auto small = in_format<e5m2>([](auto codes) { return sum_sequential<e5m2>(codes); });
  CHECK(reveal_order(small, 20, masks_for(e5m2)).depth() == 19);
}

TEST_CASE("reveal_order: the large number absorbs the ones in every format, however few its exponents") {
  const auto check = []<const Format & F>() {
    CAPTURE(name_of(F));
    for (const std::size_t leaves : {3, 8, 21}) {
      const auto of = [&](auto sum) { return reveal_order(in_format<F>(sum), leaves, masks_for(F)); };
      const auto exactly = [&](auto sum) {
        return reveal_order(in_format<binary64>(sum), leaves, masks_for(binary64));
      };
      CHECK(of([](auto codes) { return sum_sequential<F>(codes); }) ==
            exactly([](auto codes) { return sum_sequential<binary64>(codes); }));
      CHECK(of([](auto codes) { return sum_pairwise<F>(codes); }) ==
            exactly([](auto codes) { return sum_pairwise<binary64>(codes); }));
    }
  };
  check.operator()<binary32>();
  check.operator()<tf32>();
  check.operator()<bfloat16>();
  check.operator()<binary16>();
  check.operator()<e5m2>();
  check.operator()<e4m3>();
  check.operator()<e5m2_fnuz>();
  check.operator()<e4m3_fnuz>();
  check.operator()<e3m2>();
  check.operator()<e2m3>();
  check.operator()<e2m1>();
}

TEST_CASE("reveal_order: the tensor-core model adds as many terms at one time as its architecture") {
  for (const TensorCore& core : tensor_cores) {
    CAPTURE(core.name);
    const auto dot = [&](Terms terms) {
      std::vector<std::uint16_t> a, b(terms.size() - 1, 0x3c00);
      for (const double term : terms.subspan(1)) a.push_back(encode<binary16>(term).bits);
      return decode<binary32>(mma_dot<binary32>(core, a, b, encode<binary32>(terms[0]).bits));
    };
    const SummationTree tree = reveal_order(dot, 65, masks_for(binary16));  // the accumulator first
    const auto step = static_cast<std::size_t>(core.products_per_step);
    REQUIRE(tree.nodes.size() == 64 / step);
    for (const auto& children : tree.nodes) CHECK(children.size() == step + 1);
  }
}

TEST_CASE("reveal_order: an exact sum is one node, and what is no sum is refused") {
  const auto exact = in_format<binary16>([](auto codes) { return sum_exact<binary16>(codes); });
  CHECK(reveal_order(exact, 6, masks_for(binary16)).text() == "(0+1+2+3+4+5)");
  CHECK_THROWS_AS(reveal_order([](Terms terms) { return terms[0] * 2; }, 4, masks_for(binary32)), NotATree);
  CHECK_THROWS_AS(reveal_order([](Terms) { return NAN; }, 4, masks_for(binary32)), NotATree);
  CHECK_THROWS_WITH(reveal_order([](Terms terms) { return terms[0]; }, 4, masks_for(binary32)),
                    doctest::Contains("with 1.2676506002282294e+30 at 0, its negative at 1 and 1 elsewhere"));
  std::mt19937 random(3);
  const auto changing = [&](Terms terms) {
    const SummationTree tree = random_tree(terms.size(), 2, random);
    const std::vector<float> floats(terms.begin(), terms.end());
    return double{tree.evaluate(std::span(floats), fused)};
  };
  CHECK_THROWS_AS(reveal_order(changing, 40, masks_for(binary32)), NotATree);
}
