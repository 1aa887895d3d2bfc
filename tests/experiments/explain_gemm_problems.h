#pragma once
/// Problems for tests of explain_gemm whose D is planted by a reference that shares nothing with the library, and what
/// explains them.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "experiments/explain_gemm/classification.h"
#include "experiments/explain_gemm/evidence.h"
#include "experiments/explain_gemm/search.h"
#include "tests/experiments/explain_gemm_halves.h"
#include "tests/experiments/explain_gemm_reference.h"
#include "tests/experiments/silent_run.h"

namespace test::gemm {

using namespace experiments::explain_gemm;
using fp16::binary16;
using fp16::binary32;
using oracle::gemm::Output;
using oracle::gemm::Recipe;
using oracle::mma::Fixed;
using Halves = std::vector<std::uint16_t>;
using Floats = std::vector<float>;
using FixedReduction = oracle::gemm::Reduction;

/// What explains a problem, and what its differences are.
struct Answer {
  Explanation found;
  Classification classes;

  const Hypothesis& best() const { return found.best().hypothesis; }
};

inline Answer answer(const Problem& problem, int threads = 1) {
  SilentRun silent(threads);
  const SearchOptions options;
  Explanation found = explain(problem, options, silent.run);
  Classification classes = classify(problem, found, options.most_slices, silent.run);
  return {std::move(found), std::move(classes)};
}

inline Verdict verdict_of(const Answer& answer) {
  return evidence_of(answer.found).verdict;
}

inline std::vector<Hypothesis> candidates_of(const Answer& answer) {
  std::vector<Hypothesis> candidates;
  for (const std::size_t index : std::span(answer.found.verified).first(answer.found.candidates()))
    candidates.push_back(answer.found.tried[index].hypothesis);
  return candidates;
}

/// A and B at random, D of zeros.
inline Problem random_problem(const fp16::Format& format, std::size_t depth = 96, std::size_t rows = 20,
                              std::size_t columns = 24) {
  return {.rows = rows,
          .depth = depth,
          .columns = columns,
          .a = random_values(rows * depth, 1),
          .b = random_values(depth * columns, 2),
          .d = {format, rows, columns, std::vector<std::uint32_t>(rows * columns)}};
}

/// The triples of `above`, and one more.
inline Problem stacked(Problem above, const Problem& below) {
  const auto append = [](auto& values, const auto& further) {
    values.insert(values.end(), further.begin(), further.end());
  };
  append(above.a, below.a);
  append(above.b, below.b);
  append(above.c, below.c);
  append(above.d.codes, below.d.codes);
  above.rows = above.d.rows += below.rows;
  ++above.triples;
  return above;
}

/// D[i] = make(row of A, column of B, output), where `make` gives the binary32 code that is rounded to D.
inline void plant(Problem& problem,
                  const std::function<std::uint32_t(std::span<const std::uint16_t>,
                                                    std::span<const std::uint16_t>, std::size_t)>& make) {
  const Halves a = halves_of(problem.a), b = halves_of(problem.b);
  Halves column(problem.depth);
  for (std::size_t j = 0; j < problem.columns; ++j) {
    for (std::size_t k = 0; k < problem.depth; ++k) column[k] = b[k * problem.columns + j];
    for (std::size_t i = 0; i < problem.rows; ++i) {
      const std::size_t output = i * problem.columns + j;
      const std::uint32_t code = make(std::span(a).subspan(i * problem.depth, problem.depth), column, output);
      const double value = std::bit_cast<float>(code);
      problem.d.codes[output] = problem.d.format == binary32 ? code
                                : std::isfinite(value)
                                    ? oracle::gemm::nearest(oracle::mma::fixed(value), Output::binary16)
                                    : (value < 0 ? 0xfc00 : 0x7c00);
    }
  }
}

inline Problem planted(const Recipe& recipe, const fp16::Format& format) {
  Problem problem = random_problem(format);
  plant(problem, [&](auto a, auto b, std::size_t) { return oracle::gemm::dot(recipe, a, b); });
  return problem;
}

/// Sums in binary32 with the even k before the odd ones: an order that no hypothesis has.
inline std::uint32_t interleaved(std::span<const std::uint16_t> a, std::span<const std::uint16_t> b,
                                 std::size_t) {
  const oracle::gemm::Steps steps = oracle::gemm::fp32_chain();
  std::uint32_t sum = 0;
  for (const std::size_t first : {0u, 1u}) {
    for (std::size_t k = first; k < a.size(); k += 2) sum = steps.step(a.subspan(k, 1), b.subspan(k, 1), sum);
  }
  return sum;
}

inline constexpr oracle::mma::Parameters volta32{4, 23, -126}, ampere32{8, 24, -132}, hopper32{16, 25, -133};
inline constexpr oracle::mma::Parameters volta16{4, 23, -19}, ampere16{8, 24, -20}, hopper16{16, 25, -21};
inline constexpr std::size_t whole = 96;

inline Recipe hopper_in_slices(std::size_t length, FixedReduction reduction = FixedReduction::fp32) {
  return {oracle::gemm::tensor_core(hopper32, Output::binary32), length, reduction};
}

/// Blocks of k dealt to the slices in turn.
inline Recipe in_turn(const oracle::gemm::Steps& steps, std::size_t block, std::size_t slices) {
  return {
      .steps = steps, .slice_length = block, .slice_of = [=](std::size_t k) { return k / block % slices; }};
}

/// Blocks of k dealt to lanes in turn, whose sums are added in halves.
inline Recipe in_lanes(const oracle::gemm::Steps& steps, std::size_t block, std::size_t lanes,
                       FixedReduction reduction = FixedReduction::fp32) {
  Recipe recipe = in_turn(steps, block, lanes);
  recipe.reduction = reduction;
  recipe.halving = true;
  return recipe;
}

/// k below `cut`, and the rest.
inline Recipe in_two(const oracle::gemm::Steps& steps, std::size_t cut,
                     FixedReduction reduction = FixedReduction::fp32) {
  return {.steps = steps, .slice_length = cut, .reduction = reduction, .slice_of = [=](std::size_t k) {
            return std::size_t{k >= cut};
          }};
}

}  // namespace test::gemm
