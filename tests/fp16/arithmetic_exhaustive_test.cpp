#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "fp16/arithmetic.h"
#include "fp16/bulk.h"
#include "tests/fp16/half_sweeps.h"
#include "tests/oracle/fast_half.h"
#include "tests/oracle/hard_triples.h"
#include "tests/oracle/sweep.h"

namespace fp16 {
namespace {

constexpr std::uint64_t shards = 1024;
constexpr std::uint64_t code_count = 0x10000;

/// A shard has 64 first operands of all exponents, and for each all second ones.
template <typename Operation>
void sweep_pairs(const Operation& operation) {
  using Block = OperandBlock<std::uint16_t, 2>;
  const auto run = [&](std::uint64_t shard) {
    const auto comparison = std::make_unique<BlockComparison<Operation, Block>>(operation);
    auto& [a, b] = comparison->block().operands;
    oracle::Checked checked;
    for (std::uint64_t row = shard; row < code_count; row += shards) {
      a.fill(static_cast<std::uint16_t>(row));
      for (std::uint64_t column = 0; column < code_count; column += Block::size) {
        for (std::size_t i = 0; i < Block::size; ++i) b[i] = static_cast<std::uint16_t>(column + i);
        checked += {.inputs = Block::size, .difference = comparison->first_difference()};
        if (!checked.difference.empty()) return checked;
      }
    }
    return checked;
  };
  oracle::check_sweep({.name = "half_" + std::string(operation.name),
                       .shards = shards,
                       .inputs = code_count * code_count,
                       .run = run});
}

TEST_CASE("add: all pairs of halves, scalar and arrays, in all directions with flags") {
  sweep_pairs(SweptOperation{"add", [](auto a, auto b) { return oracle::fast::add(a, b); },
                             [](auto... in) { return add<binary16>(in...); },
                             [](auto... in) { add<binary16>(in...); }});
}

TEST_CASE("subtract: all pairs of halves, scalar and arrays, in all directions with flags") {
  sweep_pairs(SweptOperation{"subtract", [](auto a, auto b) { return oracle::fast::subtract(a, b); },
                             [](auto... in) { return subtract<binary16>(in...); },
                             [](auto... in) { subtract<binary16>(in...); }});
}

TEST_CASE("multiply: all pairs of halves, scalar and arrays, in all directions with flags") {
  sweep_pairs(SweptOperation{"multiply", [](auto a, auto b) { return oracle::fast::multiply(a, b); },
                             [](auto... in) { return multiply<binary16>(in...); },
                             [](auto... in) { multiply<binary16>(in...); }});
}

TEST_CASE("divide: all pairs of halves, scalar and arrays, in all directions with flags") {
  sweep_pairs(SweptOperation{"divide", [](auto a, auto b) { return oracle::fast::divide(a, b); },
                             [](auto... in) { return divide<binary16>(in...); },
                             [](auto... in) { divide<binary16>(in...); }});
}

TEST_CASE("fma: 2^30 boundary-weighted triples of halves, scalar and arrays, in all directions with flags") {
  using Block = OperandBlock<std::uint16_t, 3>;
  constexpr std::uint64_t triples = std::uint64_t{1} << 20;
  const SweptOperation operation{"fma", [](auto a, auto b, auto c) { return oracle::fast::fma(a, b, c); },
                                 [](auto... in) { return fma<binary16>(in...); },
                                 [](auto... in) { fma<binary16>(in...); }};
  const auto run = [&](std::uint64_t shard) {
    const auto comparison = std::make_unique<BlockComparison<decltype(operation), Block>>(operation);
    auto& [a, b, c] = comparison->block().operands;
    oracle::HardTriples cases(shard);
    oracle::Checked checked;
    while (checked.inputs < triples && checked.difference.empty()) {
      for (std::size_t i = 0; i < Block::size; ++i) {
        const oracle::HardTriple triple = cases.next();
        a[i] = triple.a;
        b[i] = triple.b;
        c[i] = triple.c;
      }
      checked += {.inputs = Block::size, .difference = comparison->first_difference()};
    }
    return checked;
  };
  oracle::check_sweep({.name = "half_fma", .shards = shards, .inputs = shards * triples, .run = run});
}

}  // namespace
}  // namespace fp16
