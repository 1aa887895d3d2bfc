/// A census of a library whose arithmetic is known finds it, way by way.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/explain_gemm/census.h"
#include "fp16/codec.h"
#include "tests/experiments/explain_gemm_halves.h"
#include "tests/experiments/gpu/fake_cublas.h"
#include "tests/experiments/silent_run.h"

namespace {

using namespace experiments;
using namespace experiments::explain_gemm;
using test::random_values;

Problem problem_of(float alpha, float beta) {
  constexpr std::size_t rows = 12, columns = 16, depth = 512;
  Problem problem{.rows = rows,
                  .depth = depth,
                  .columns = columns,
                  .a = random_values(rows * depth, 1),
                  .b = random_values(depth * columns, 2),
                  .d = {},
                  .alpha = alpha,
                  .beta = beta};
  if (beta != 0) {
    problem.c = random_values(rows * columns, 3);
    problem.c[0] = 0x1.001p0f;  // not a half
  }
  return problem;
}

/// The host's memory in the place of the device's.
Census census_of(const Problem& problem, const CensusOptions& options = {}, int failing_product = -1) {
  OpenedCublas cublas = open_cublas(test::fake_cublas);
  OpenedCublasLt cublas_lt = open_cublas_lt(test::fake_cublas);
  REQUIRE(cublas.cublas);
  REQUIRE(cublas_lt.cublas_lt);
  const std::vector<std::uint16_t> halves_a = halves_of(problem.a), halves_b = halves_of(problem.b);
  std::vector<float> d(problem.outputs());
  const CensusMemory memory{
      .halves_a = halves_a.data(),
      .halves_b = halves_b.data(),
      .floats_a = problem.a.data(),
      .floats_b = problem.b.data(),
      .d = d.data(),
      .workspace = nullptr,
      .workspace_bytes = 100000,
      .write_d = [&](std::span<const std::byte> bytes) { std::memcpy(d.data(), bytes.data(), bytes.size()); },
      .read_d =
          [&](std::span<std::byte> bytes) {
            if (failing_product-- == 0) throw std::runtime_error("cudaMemcpy: unspecified launch failure");
            std::memcpy(bytes.data(), d.data(), bytes.size());
          },
  };
  test::SilentRun silent;
  return take_census(problem, options, {}, *cublas.cublas, *cublas_lt.cublas_lt, memory, silent.run);
}

/// The hypotheses that reproduce every bit of what an attempt made.
std::vector<Hypothesis> candidates_of(const Census& census, const Attempt& attempt) {
  const Explanation& found = census.results.at(attempt.result.value()).explanation;
  std::vector<Hypothesis> candidates;
  for (std::size_t i = 0; i < found.candidates(); ++i)
    candidates.push_back(found.tried[found.verified[i]].hypothesis);
  return candidates;
}

}  // namespace

TEST_CASE("explain_gemm census: every way is explained by the arithmetic that the library has") {
  const Census census = census_of(problem_of(1, 0));
  CHECK(census.cublas_version == 130100);
  CHECK(census.count("unexplained") == 0);
  std::size_t refused = 0, fickle = 0, sliced = 0;
  for (const Attempt& attempt : census.attempts) {
    INFO(attempt.way.text());
    const auto& algorithm = attempt.way.algorithm;
    if (!attempt.refusal.empty()) {
      ++refused;
      CHECK((attempt.way.compute == CublasCompute::fp32_fast_tf32 || algorithm->id == 40));
      continue;
    }
    if (algorithm && algorithm->id == 41) {
      fickle += !attempt.repeats;
      continue;
    }
    CHECK(attempt.repeats);
    const bool halves = scale_type(attempt.way.compute) == CublasType::fp16;
    const int split_k = algorithm ? algorithm->split_k : 1;
    const LtReduction scheme = algorithm ? algorithm->reduction : LtReduction::none;
    const bool to_half = attempt.way.output == CublasType::fp16;
    // What is rounded to FP16 as it is stored is no other in FP32.
    const bool in_halves = to_half && !halves;
    const Reduction scheme_reduction =
        split_k == 1                                      ? Reduction::none
        : scheme == LtReduction::in_place && in_halves    ? Reduction::narrow_in_place
        : scheme == LtReduction::in_place && halves       ? Reduction::narrow
        : scheme == LtReduction::output_type && in_halves ? Reduction::narrow_partials
                                                          : Reduction::fp32;
    // One sum of two halves is the same for all that add halves.
    const bool adds_halves = scheme_reduction == Reduction::narrow_partials || halves;
    const Reduction reduction = split_k == 2 && to_half && adds_halves ? Reduction::narrow : scheme_reduction;
    sliced += split_k > 1;
    const std::vector<Hypothesis> candidates = candidates_of(census, attempt);
    CHECK(std::ranges::any_of(candidates, [&](const Hypothesis& hypothesis) {
      return hypothesis.accumulator->name == (halves ? "fp16_fma_chain" : "fp32_fma_chain") &&
             hypothesis.slices == static_cast<std::size_t>(split_k) && hypothesis.reduction == reduction;
    }));
    // FP32 hides nothing.
    if (attempt.way.output == CublasType::fp32) CHECK(candidates.size() == 1);
  }
  const auto listed = std::ranges::count_if(
      census.attempts, [](const Attempt& attempt) { return attempt.way.source == Source::lt_listed; });
  CHECK(static_cast<std::size_t>(listed) + 3 * 2 == census.algorithms_listed);
  CHECK(refused == 1 + 3);
  CHECK(fickle == 3);
  CHECK(sliced > 50);
}

TEST_CASE("explain_gemm census: C is given in D's format and its factors are found") {
  const Census census = census_of(problem_of(0.75f, -1.3f), {.most_algorithms = 3});
  for (const Attempt& attempt : census.attempts) {
    if (!attempt.result || (attempt.way.algorithm && attempt.way.algorithm->id == 41)) continue;
    INFO(attempt.way.text());
    const Result& result = census.results[*attempt.result];
    CHECK(result.problem.c[0] == (attempt.way.output == CublasType::fp16 ? 1.0f : 0x1.001p0f));
    CHECK(result.verdict() != "unexplained");
    for (const Hypothesis& hypothesis : candidates_of(census, attempt)) {
      if (attempt.way.output == CublasType::fp32) CHECK(hypothesis.epilogue == Epilogue::mul_add);
    }
  }
}

TEST_CASE("explain_gemm census: of many algorithms an even part is tried and written down") {
  const Census census = census_of(problem_of(1, 0), {.most_algorithms = 5});
  const auto listed = std::ranges::count_if(
      census.attempts, [](const Attempt& attempt) { return attempt.way.source == Source::lt_listed; });
  CHECK(listed == 3 * 5);
  CHECK(census.algorithms_listed > 3 * 50);
  test::SilentRun silent;
  write_census(silent.record, census);
  write_census_verdict(silent.record, census);
  CHECK(census_bug_line(census).empty() == std::ranges::none_of(census.results, [](const Result& result) {
          return result.classification.count(Kind::real_bug) > 0;
        }));
}

TEST_CASE("explain_gemm census: what the budget leaves no time for is counted, and the rest written down") {
  const Census census = census_of(problem_of(1, 0), {.budget_s = 0.0});
  CHECK(census.attempts.empty());
  CHECK(census.ways_not_asked >= ways_of_gemm().size());
  CHECK(census.fault.empty());
  test::SilentRun silent;
  write_census(silent.record, census);
  draw_census_figure(silent.run, census);
  write_census_verdict(silent.record, census);
  CHECK(silent.record.verdict().find(std::to_string(census.ways_not_asked) + " ways were not asked for") !=
        std::string::npos);
}

TEST_CASE("explain_gemm census: a device that fails ends the asking, and what was made is explained") {
  Census census = census_of(problem_of(1, 0), {.most_algorithms = 5}, 8);
  CHECK(census.attempts.size() == 4);
  CHECK(census.ways_not_asked > 10);
  CHECK(census.fault == ways_of_gemm()[4].text() + ": cudaMemcpy: unspecified launch failure");
  CHECK(census.count("not searched") == 0);
  CHECK(census.results.size() >= 1);
  census.results.front().explanation = {};  // as where the budget ended before
  CHECK(census.results.front().verdict() == "not searched");
  test::SilentRun silent;
  write_census(silent.record, census);
  write_census_verdict(silent.record, census);
  CHECK(silent.record.verdict().find("1 different D not searched") != std::string::npos);
  CHECK(silent.record.verdict().find("THE DEVICE FAILED at " + census.fault) != std::string::npos);
}
