/// Matrix products whose arithmetic is known, because a reference that shares nothing with the library made
/// them, are explained by that arithmetic.

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "experiments/explain_gemm/classification.h"
#include "experiments/explain_gemm/record.h"
#include "experiments/explain_gemm/search.h"
#include "tests/experiments/explain_gemm_reference.h"
#include "tests/experiments/silent_run.h"

namespace {

using namespace experiments::explain_gemm;
using experiments::Run;
using fp16::binary16;
using fp16::binary32;
using oracle::gemm::Output;
using oracle::gemm::Recipe;
using oracle::mma::Fixed;
using Halves = std::vector<std::uint16_t>;
using FixedReduction = oracle::gemm::Reduction;

/// What explains a problem, and what its differences are.
struct Answer {
  Explanation found;
  Classification classes;

  const Hypothesis& best() const { return found.best().hypothesis; }
};

Answer answer(const Problem& problem, int threads = 1) {
  test::SilentRun silent(threads);
  const SearchOptions options;
  Explanation found = explain(problem, options, silent.run);
  Classification classes = classify(problem, found, options.most_slices, silent.run);
  return {std::move(found), std::move(classes)};
}

std::vector<Hypothesis> candidates_of(const Answer& answer) {
  std::vector<Hypothesis> candidates;
  for (const std::size_t index : std::span(answer.found.verified).first(answer.found.candidates()))
    candidates.push_back(answer.found.tried[index].hypothesis);
  return candidates;
}

/// Codes of halves of a few binades around 1, with all bits of the significand.
Halves random_halves(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  Halves halves(count);
  for (std::uint16_t& half : halves) {
    const std::uint64_t bits = generator();
    half = static_cast<std::uint16_t>((bits & 0x83ff) | (12 + (bits >> 20) % 4) << 10);
  }
  return halves;
}

/// A and B at random, D of zeros.
Problem random_problem(const fp16::Format& format, std::size_t depth = 96, std::size_t rows = 20,
                       std::size_t columns = 24) {
  return {.rows = rows,
          .depth = depth,
          .columns = columns,
          .a = random_halves(rows * depth, 1),
          .b = random_halves(depth * columns, 2),
          .d = {format, rows, columns, std::vector<std::uint32_t>(rows * columns)}};
}

/// D[i] = make(row of A, column of B, output), where `make` gives the binary32 code that is rounded to D.
void plant(Problem& problem,
           const std::function<std::uint32_t(std::span<const std::uint16_t>, std::span<const std::uint16_t>,
                                             std::size_t)>& make) {
  Halves column(problem.depth);
  for (std::size_t j = 0; j < problem.columns; ++j) {
    for (std::size_t k = 0; k < problem.depth; ++k) column[k] = problem.b[k * problem.columns + j];
    for (std::size_t i = 0; i < problem.rows; ++i) {
      const std::size_t output = i * problem.columns + j;
      const std::uint32_t code =
          make(std::span(problem.a).subspan(i * problem.depth, problem.depth), column, output);
      const double value = std::bit_cast<float>(code);
      problem.d.codes[output] = problem.d.format == binary32 ? code
                                : std::isfinite(value)
                                    ? oracle::gemm::nearest(oracle::mma::fixed(value), Output::binary16)
                                    : (value < 0 ? 0xfc00 : 0x7c00);
    }
  }
}

Problem planted(const Recipe& recipe, const fp16::Format& format) {
  Problem problem = random_problem(format);
  plant(problem, [&](auto a, auto b, std::size_t) { return oracle::gemm::dot(recipe, a, b); });
  return problem;
}

/// Sums in binary32 with the even k before the odd ones: an order that no hypothesis has.
std::uint32_t interleaved(std::span<const std::uint16_t> a, std::span<const std::uint16_t> b, std::size_t) {
  const oracle::gemm::Steps steps = oracle::gemm::fp32_chain();
  std::uint32_t sum = 0;
  for (const std::size_t first : {0u, 1u}) {
    for (std::size_t k = first; k < a.size(); k += 2) sum = steps.step(a.subspan(k, 1), b.subspan(k, 1), sum);
  }
  return sum;
}

constexpr oracle::mma::Parameters volta32{4, 23, -126}, ampere32{8, 24, -132}, hopper32{16, 25, -133};
constexpr oracle::mma::Parameters volta16{4, 23, -19}, ampere16{8, 24, -20}, hopper16{16, 25, -21};
constexpr std::size_t whole = 96;

Recipe hopper_in_slices(std::size_t length, FixedReduction reduction = FixedReduction::fp32) {
  return {oracle::gemm::tensor_core(hopper32, Output::binary32), length, reduction};
}

/// Blocks of k dealt to the slices in turn.
Recipe in_turn(const oracle::gemm::Steps& steps, std::size_t block, std::size_t slices) {
  return {
      .steps = steps, .slice_length = block, .slice_of = [=](std::size_t k) { return k / block % slices; }};
}

/// k below `cut`, and the rest.
Recipe in_two(const oracle::gemm::Steps& steps, std::size_t cut,
              FixedReduction reduction = FixedReduction::fp32) {
  return {.steps = steps, .slice_length = cut, .reduction = reduction, .slice_of = [=](std::size_t k) {
            return std::size_t{k >= cut};
          }};
}

}  // namespace

TEST_CASE(
    "explain_gemm: every accumulator, step and reduction is found from what it made, and nothing else") {
  using oracle::gemm::tensor_core;
  const Output single = Output::binary32, half = Output::binary16;
  const oracle::mma::Parameters hopper_by_8{8, 25, -133}, ampere_by_4{4, 24, -132};
  const oracle::gemm::Steps hopper = tensor_core(hopper32, single);
  const struct {
    std::string accumulator;
    Recipe recipe;
    Reduction reduction = Reduction::none;
    Slicing slicing = Slicing::even;
  } rows[] = {
      {"fp32_fma_chain", {oracle::gemm::fp32_chain(), whole}},
      {"fp16_fma_chain", {oracle::gemm::fp16_fma_chain(), whole}},
      {"fp16_mul_add_chain", {oracle::gemm::fp16_mul_add_chain(), whole}},
      {"volta_fp32", {tensor_core(volta32, single), whole}},
      {"turing/ampere/ada_fp32", {tensor_core(ampere32, single), whole}},
      {"turing/ampere/ada_fp32_step4", {tensor_core(ampere_by_4, single), whole}},
      {"hopper/blackwell_fp32", {tensor_core(hopper32, single), whole}},
      {"hopper/blackwell_fp32_step8", {tensor_core(hopper_by_8, single), whole}},
      {"fp32_fma_chain", {oracle::gemm::fp32_chain(), 32}, Reduction::fp32},
      {"fp32_fma_chain",
       {oracle::gemm::fp32_chain(), 32, FixedReduction::fp16_partials},
       Reduction::fp16_partials},
      {"fp32_fma_chain", {oracle::gemm::fp32_chain(), 24, FixedReduction::fp16}, Reduction::fp16},
      {"fp16_fma_chain", {oracle::gemm::fp16_fma_chain(), 48}, Reduction::fp32},
      {"fp16_mul_add_chain", {oracle::gemm::fp16_mul_add_chain(), 20, FixedReduction::fp16}, Reduction::fp16},
      {"volta_fp32", {tensor_core(volta32, single), 16}, Reduction::fp32},
      {"turing/ampere/ada_fp32", {tensor_core(ampere32, single), 48}, Reduction::fp32},
      {"hopper/blackwell_fp32", hopper_in_slices(32), Reduction::fp32},
      {"hopper/blackwell_fp32", hopper_in_slices(64), Reduction::fp32},
      {"hopper/blackwell_fp16", {tensor_core(hopper16, half), 32}, Reduction::fp32},
      {"hopper/blackwell_fp32", {hopper, 16, FixedReduction::fp32, true}, Reduction::fp32},
      {"volta_fp32", {tensor_core(volta32, single), 24, FixedReduction::fp32, true}, Reduction::fp32},
      {"fp32_fma_chain", {oracle::gemm::fp32_chain(), 20, FixedReduction::fp16, true}, Reduction::fp16},
      {"hopper/blackwell_fp32", in_turn(hopper, 16, 2), Reduction::fp32, Slicing::interleaved},
      {"hopper/blackwell_fp32", in_turn(hopper, 16, 4), Reduction::fp32, Slicing::interleaved},
      {"hopper/blackwell_fp32", in_turn(hopper, 32, 2), Reduction::fp32, Slicing::interleaved},
      {"fp32_fma_chain", in_turn(oracle::gemm::fp32_chain(), 8, 8), Reduction::fp32, Slicing::interleaved},
      {"fp16_fma_chain", in_turn(oracle::gemm::fp16_fma_chain(), 8, 2), Reduction::fp32,
       Slicing::interleaved},
      {"hopper/blackwell_fp32", in_two(hopper, 32), Reduction::fp32, Slicing::uneven},
      {"turing/ampere/ada_fp32", in_two(tensor_core(ampere32, single), 80), Reduction::fp32, Slicing::uneven},
      {"fp16_fma_chain", in_two(oracle::gemm::fp16_fma_chain(), 16, FixedReduction::fp16), Reduction::fp16,
       Slicing::uneven},
  };
  for (const auto& row : rows) {
    const Answer result = answer(planted(row.recipe, binary32));
    INFO(row.accumulator, " ", row.recipe.slice_length, " ", name_of(row.reduction));
    const std::vector<Hypothesis> candidates = candidates_of(result);
    CHECK(std::ranges::any_of(candidates, [&](const Hypothesis& hypothesis) {
      return hypothesis.accumulator->name == row.accumulator;
    }));
    for (const Hypothesis& candidate : candidates) {
      CHECK(candidate.slice_length == row.recipe.slice_length);
      CHECK(candidate.reduction == row.reduction);
      CHECK(candidate.slicing == row.slicing);
    }
    CHECK(result.classes.name() == "none");
    CHECK(result.classes.differences.empty());
    // Rounding the sums of slices to FP16 hides what was before it.
    if (row.reduction == Reduction::fp16_partials || row.reduction == Reduction::fp16) continue;
    CHECK(candidates.size() == 1);
    CHECK((candidates[0].order == Order::pairwise) == row.recipe.pairwise);
    CHECK(verdict_name(result.found) == "explained");
  }
}

TEST_CASE("explain_gemm: tensor cores with FP16 accumulators are among what explains their products") {
  // Their rounding hides most differences between cores of the same step: others may explain them too.
  const struct {
    std::string accumulator;
    oracle::mma::Parameters parameters;
  } rows[] = {
      {"volta_fp16", volta16}, {"turing/ampere/ada_fp16", ampere16}, {"hopper/blackwell_fp16", hopper16}};
  for (const auto& row : rows) {
    const Recipe recipe{oracle::gemm::tensor_core(row.parameters, Output::binary16), whole};
    const Answer result = answer(planted(recipe, binary16));
    INFO(row.accumulator);
    const std::vector<Hypothesis> candidates = candidates_of(result);
    CHECK(std::ranges::any_of(candidates, [&](const Hypothesis& hypothesis) {
      return hypothesis.accumulator->name == row.accumulator;
    }));
    for (const Hypothesis& candidate : candidates) {
      CHECK(candidate.accumulator->products_per_step ==
            static_cast<std::size_t>(row.parameters.products_per_step));
      CHECK(candidate.accumulator->format == binary16);
      CHECK(candidate.slices == 1);
    }
  }
}

TEST_CASE("explain_gemm: slices added in place, through D in FP16, are told from partial sums in FP16") {
  constexpr std::size_t length = 32;
  for (const FixedReduction fixed :
       {FixedReduction::fp16_in_place, FixedReduction::fp16_partials, FixedReduction::fp16}) {
    Problem problem = random_problem(binary16, 128, 40, 40);
    plant(problem, [&](auto a, auto b, std::size_t) {
      return oracle::gemm::dot(hopper_in_slices(length, fixed), a, b);
    });
    const Reduction expected = fixed == FixedReduction::fp16_in_place   ? Reduction::fp16_in_place
                               : fixed == FixedReduction::fp16_partials ? Reduction::fp16_partials
                                                                        : Reduction::fp16;
    const Answer result = answer(problem);
    const std::vector<Hypothesis> candidates = candidates_of(result);
    CHECK(std::ranges::any_of(candidates, [](const Hypothesis& hypothesis) {
      return hypothesis.accumulator->name == "hopper/blackwell_fp32" && hypothesis.order == Order::ascending;
    }));
    for (const Hypothesis& candidate : candidates) {
      CHECK(candidate.reduction == expected);
      CHECK(candidate.slice_length == length);
    }
    CHECK(arithmetic_of(result.best()) == Arithmetic::fp16_reduction);
  }
}

TEST_CASE("explain_gemm: every epilogue is found from what it made") {
  using oracle::gemm::exact;
  using oracle::gemm::nearest;
  using oracle::gemm::times;
  constexpr float alpha = 0.7f, beta = -1.3f;
  const Output single = Output::binary32;
  const Fixed a = oracle::mma::fixed(alpha), b = oracle::mma::fixed(beta);
  const auto rounded = [&](const Fixed& value) { return exact(nearest(value, single), single); };
  const auto halved = [&](const Fixed& value) {
    return exact(nearest(value, Output::binary16), Output::binary16);
  };
  const Fixed a16 = halved(a), b16 = halved(b);
  const struct {
    Epilogue epilogue;
    float alpha, beta;
    fp16::Format format;
    std::function<Fixed(const Fixed& sum, const Fixed& c)> make;
  } rows[] = {
      {Epilogue::scale, alpha, 0, binary32, [&](auto& s, auto&) { return times(a, s); }},
      {Epilogue::fma_on_product, alpha, beta, binary32,
       [&](auto& s, auto& c) { return Fixed(times(a, s) + rounded(times(b, c))); }},
      {Epilogue::fma_on_c, alpha, beta, binary32,
       [&](auto& s, auto& c) { return Fixed(times(b, c) + rounded(times(a, s))); }},
      {Epilogue::mul_add, alpha, beta, binary32,
       [&](auto& s, auto& c) { return Fixed(rounded(times(a, s)) + rounded(times(b, c))); }},
      {Epilogue::mul_add, 1, 1, binary32, [&](auto& s, auto& c) { return Fixed(s + c); }},
      {Epilogue::round_product_first, alpha, beta, binary16,
       [&](auto& s, auto& c) { return Fixed(rounded(times(a, halved(s))) + rounded(times(b, c))); }},
      {Epilogue::round_c_first, alpha, beta, binary16,
       [&](auto& s, auto& c) { return Fixed(rounded(times(a, s)) + halved(rounded(times(b, c)))); }},
      {Epilogue::half_scale, alpha, 0, binary16, [&](auto& s, auto&) { return times(a16, halved(s)); }},
      {Epilogue::half_mul_add, alpha, beta, binary16,
       [&](auto& s, auto& c) { return Fixed(halved(times(a16, halved(s))) + halved(times(b16, c))); }},
      {Epilogue::half_fma_on_product, alpha, beta, binary16,
       [&](auto& s, auto& c) { return Fixed(times(a16, halved(s)) + halved(times(b16, c))); }},
      {Epilogue::half_fma_on_c, alpha, beta, binary16,
       [&](auto& s, auto& c) { return Fixed(times(b16, c) + halved(times(a16, halved(s)))); }},
  };
  const Recipe recipe = hopper_in_slices(48);
  for (const auto& row : rows) {
    Problem problem = random_problem(row.format);
    problem.alpha = row.alpha;
    problem.beta = row.beta;
    if (row.beta != 0) {
      for (const std::uint16_t half : random_halves(problem.outputs(), 3))
        problem.c.push_back(static_cast<float>(value_of(binary16, half)));
    }
    plant(problem, [&](auto x, auto y, std::size_t output) {
      const Fixed sum = exact(oracle::gemm::dot(recipe, x, y), single);
      const Fixed d = row.make(sum, oracle::mma::fixed(problem.c_at(output)));
      // Rounded once to FP16, as a half's operation is; to FP32 and then to FP16 otherwise.
      return nearest(is_in_halves(row.epilogue) ? halved(d) : d, single);
    });
    const Answer result = answer(problem);
    INFO(name_of(row.epilogue));
    const std::vector<Hypothesis> candidates = candidates_of(result);
    CHECK(std::ranges::any_of(candidates, [](const Hypothesis& hypothesis) {
      return hypothesis.accumulator->name == "hopper/blackwell_fp32" && hypothesis.slice_length == 48;
    }));
    for (const Hypothesis& candidate : candidates) CHECK(candidate.epilogue == row.epilogue);
    // Rounding to FP16 hides most of what was before it.
    if (row.format == binary32) CHECK(candidates.size() == 1);
  }
}

TEST_CASE("explain_gemm: an accumulator that starts at C is told from C added at the end") {
  Problem problem = random_problem(binary32);
  problem.beta = 1;
  for (const std::uint16_t half : random_halves(problem.outputs(), 3))
    problem.c.push_back(static_cast<float>(value_of(binary16, half)));
  const Recipe recipe = hopper_in_slices(whole);
  plant(problem, [&](auto a, auto b, std::size_t output) {
    return oracle::gemm::dot(recipe, a, b, std::bit_cast<std::uint32_t>(problem.c[output]));
  });
  const Answer result = answer(problem);
  CHECK(result.found.candidates() == 1);
  CHECK(result.best().epilogue == Epilogue::start_from_c);
  CHECK(result.best().accumulator->name == "hopper/blackwell_fp32");
}

TEST_CASE("explain_gemm: one wrong output is a real bug at its place, and the others are still explained") {
  for (const fp16::Format& format : {binary16, binary32}) {
    Problem problem = planted(hopper_in_slices(48), format);
    const std::size_t wrong = 5 * problem.columns + 7;
    std::uint32_t& code = problem.d.codes[wrong];
    code ^= format == binary16 ? 0x0200 : 0x00400000;  // the leading bit after the point
    const Answer result = answer(problem);
    CHECK(verdict_name(result.found) == "unexplained");
    CHECK(result.found.best().unexplained() == 1);
    CHECK(result.found.best().first_unexplained == wrong);
    if (format == binary32) CHECK(result.best().slice_length == 48);
    CHECK(result.classes.name() == "real_bug");
    REQUIRE(result.classes.differences.size() == 1);
    const Difference& difference = result.classes.differences.front();
    CHECK(difference.kind == Kind::real_bug);
    CHECK(difference.output == wrong);
    CHECK(difference.observed == code);
    double exact = 0;  // products of halves and so few sums of them are exact in double
    for (std::size_t k = 0; k < problem.depth; ++k)
      exact += value_of(binary16, problem.a[5 * problem.depth + k]) *
               value_of(binary16, problem.b[k * problem.columns + 7]);
    CHECK(difference.exact.value == exact);
    const Findings findings{problem, result.found, result.classes};
    CHECK(bug_line(findings).find("D[5][7] = ") != std::string::npos);
  }
}

TEST_CASE("explain_gemm: one wrong output among interleaved slices or uneven ones is still a real bug") {
  const oracle::gemm::Steps hopper = oracle::gemm::tensor_core(hopper32, Output::binary32);
  for (const Recipe& recipe : {in_turn(hopper, 16, 2), in_two(hopper, 32)}) {
    Problem problem = planted(recipe, binary32);
    problem.d.codes[100] ^= 0x00400000;
    const Answer result = answer(problem);
    CHECK(result.found.best().unexplained() == 1);
    CHECK(result.best().slicing == (recipe.slice_length == 16 ? Slicing::interleaved : Slicing::uneven));
    CHECK(result.classes.name() == "real_bug");
    CHECK(result.classes.differences.front().output == 100);
    const Findings findings{problem, result.found, result.classes};
    CHECK(next_step(findings).find("in row 4 and column 4 ") != std::string::npos);
  }
}

TEST_CASE("explain_gemm: a product of halves beyond the range overflows in the epilogue") {
  Problem problem = random_problem(binary16, 16, 2, 2);
  std::ranges::fill(problem.a, 0x5400);  // 64
  std::ranges::fill(problem.b, 0x5420);  // 66: sums of 67584 / 2
  for (std::size_t k = 8; k < problem.depth; ++k) {
    for (std::size_t j = 0; j < problem.columns; ++j) problem.b[k * problem.columns + j] = 0;
  }
  problem.alpha = 2;
  problem.beta = 0.75f;
  problem.c.assign(problem.outputs(), -60000.0f);
  problem.d.codes.assign(problem.outputs(), 0x7c00);  // 2 * 33792 is 67584, which no half is
  const Answer result = answer(problem);
  CHECK(result.found.candidates() > 0);
  for (const Hypothesis& candidate : candidates_of(result)) CHECK(is_in_halves(candidate.epilogue));
  CHECK(result.classes.name() == "accumulator_overflow");
  CHECK(result.classes.overflowed == 4);
  CHECK(!result.classes.first_overflow_at);
  CHECK(
      next_step({problem, result.found, result.classes}).starts_with("Next: keep sums and factors in FP32"));
}

TEST_CASE("explain_gemm: each outcome has its next step") {
  const auto step_of = [](const Problem& problem) {
    const Answer result = answer(problem);
    return next_step({problem, result.found, result.classes});
  };
  Problem problem = planted(hopper_in_slices(48), binary32);
  CHECK(step_of(problem).starts_with("Next: hold ports and tests to this hypothesis"));
  plant(problem, interleaved);
  CHECK(step_of(problem).starts_with("Next: hold D to the bounds of outputs.csv"));
  problem = planted({oracle::gemm::fp32_chain(), whole}, binary16);
  for (Halves* operand : {&problem.a, &problem.b}) std::ranges::fill(*operand, 0x3c00);
  std::ranges::fill(problem.d.codes, 0x5600);  // 96
  CHECK(step_of(problem).starts_with("Next: to tell them apart let the kernel store D in FP32"));
  std::ranges::fill(problem.a, 0x7bff);
  std::ranges::fill(problem.d.codes, 0x7c00);
  CHECK(step_of(problem).starts_with("Next: store D in FP32, or scale A or B down"));
  CHECK(answer(problem).classes.beyond_range == problem.outputs());
  CHECK(answer(problem).classes.first_beyond_range == 0);
}

TEST_CASE("explain_gemm: hypotheses of two slices that are the same for all operands are tried once") {
  const auto reductions = [](Problem problem, Epilogue epilogue, const fp16::Format& accumulator) {
    std::vector<Reduction> found;
    for (const Hypothesis& hypothesis : hypotheses(problem, 16)) {
      if (hypothesis.slices == 2 && hypothesis.slice_length == 16 && hypothesis.slicing == Slicing::even &&
          hypothesis.epilogue == epilogue && hypothesis.accumulator->format == accumulator &&
          hypothesis.accumulator->products_per_step == 1)
        found.push_back(hypothesis.reduction);
    }
    return found;
  };
  using Reductions = std::vector<Reduction>;
  Problem problem = random_problem(binary16, 32, 2, 2);
  CHECK(reductions(problem, Epilogue::round_once, binary32) == Reductions{Reduction::fp32, Reduction::fp16});
  CHECK(reductions(problem, Epilogue::round_once, binary16) == Reductions{Reduction::fp16, Reduction::fp16});
  problem.alpha = 0.7f;
  CHECK(reductions(problem, Epilogue::scale, binary32) ==
        Reductions{Reduction::fp32, Reduction::fp16_partials, Reduction::fp16});
  problem = random_problem(binary32, 32, 2, 2);
  CHECK(reductions(problem, Epilogue::round_once, binary32) ==
        Reductions{Reduction::fp32, Reduction::fp16_partials, Reduction::fp16});
}

TEST_CASE("explain_gemm: slices hold every k once") {
  for (const std::size_t depth : {1, 17, 96, 500, 4096}) {
    std::size_t uneven = 0;
    for (const Hypothesis& hypothesis : hypotheses(random_problem(binary32, depth, 1, 1), 16)) {
      const Slices slices = slices_of(hypothesis, depth);
      CHECK(slices.size() == hypothesis.slices);
      std::vector<int> seen(depth);
      for (const std::vector<Range>& slice : slices) {
        CHECK(!slice.empty());
        for (const auto& [first, length] : slice) {
          for (std::size_t k = first; k < first + length; ++k) ++seen.at(k);
        }
      }
      CHECK(std::ranges::count(seen, 1) == static_cast<std::ptrdiff_t>(depth));
      if (hypothesis.accumulator == &accumulators().front()) uneven += hypothesis.slicing == Slicing::uneven;
    }
    CHECK(uneven <= most_uneven_cuts);
  }
}

TEST_CASE("explain_gemm: an order that is not in the list is rounding only") {
  for (const fp16::Format& format : {binary16, binary32}) {
    Problem problem = random_problem(format, 512, 40, 48);
    plant(problem, interleaved);
    const Answer result = answer(problem);
    CHECK(verdict_name(result.found) == "unexplained");
    CHECK(result.found.best().unexplained() > 0);
    CHECK(result.classes.name() == "rounding_only");
    CHECK(result.classes.arithmetic == Arithmetic::fp32);
    CHECK(result.classes.count(Kind::rounding) == result.found.best().unexplained());
  }
}

TEST_CASE("explain_gemm: an unknown order of FP16 sums is not called a bug") {
  Problem problem = random_problem(binary32, 512);
  const oracle::gemm::Steps steps = oracle::gemm::fp16_fma_chain();
  plant(problem, [&](auto a, auto b, std::size_t) {
    std::uint32_t sum = 0;
    for (std::size_t k = a.size(); k-- > 0;) sum = steps.step(a.subspan(k, 1), b.subspan(k, 1), sum);
    return std::bit_cast<std::uint32_t>(static_cast<float>(oracle::mma::value_of(Output::binary16, sum)));
  });
  const Answer result = answer(problem);
  CHECK(verdict_name(result.found) == "unexplained");
  CHECK(!result.classes.majority);
  CHECK(result.classes.name() == "undecided");
  CHECK(result.classes.count(Kind::real_bug) == 0);
  CHECK(result.classes.count(Kind::undecided) > 0);
}

TEST_CASE("explain_gemm: sums that are exact in every order are ambiguous") {
  Problem problem = random_problem(binary16, 32);
  for (Halves* operand : {&problem.a, &problem.b}) {
    for (std::uint16_t& half : *operand) half = half & 1 ? 0x3c00 : 0xc000;  // 1 and -2
  }
  plant(problem, [&](auto a, auto b, std::size_t) {
    return oracle::gemm::dot({oracle::gemm::fp32_chain(), whole}, a, b);
  });
  const Answer result = answer(problem);
  CHECK(verdict_name(result.found) == "ambiguous");
  CHECK(result.found.candidates() == result.found.tried.size());
  CHECK(result.best().accumulator->name == "fp32_fma_chain");
  CHECK(result.best().slices == 1);
  CHECK(result.classes.name() == "none");
}

TEST_CASE("explain_gemm: an accumulator's overflow is named with its first k") {
  // Products of 1024: the 64th sum is 65536. What follows brings the exact sum back into the range.
  Problem problem = random_problem(binary16, 128, 2, 3);
  std::ranges::fill(problem.a, 0x5000);  // 32
  for (std::size_t k = 0; k < problem.depth; ++k) {
    for (std::size_t j = 0; j < problem.columns; ++j)
      problem.b[k * problem.columns + j] = k < 80 ? 0x5000 : 0xd000;
  }
  for (std::size_t k = 0; k < problem.depth; ++k)
    problem.b[k * problem.columns + 1] = k % 2 ? 0x5000 : 0xd000;
  plant(problem, [&](auto a, auto b, std::size_t) {
    return oracle::gemm::dot({oracle::gemm::fp16_fma_chain(), 128}, a, b);
  });
  CHECK(problem.d.codes == std::vector<std::uint32_t>{0x7c00, 0, 0x7c00, 0x7c00, 0, 0x7c00});
  const Answer result = answer(problem);
  CHECK(result.found.candidates() > 0);
  CHECK(result.classes.name() == "accumulator_overflow");
  CHECK(result.classes.overflowed == 4);
  CHECK(result.classes.first_overflow_at == 63);
  CHECK(result.classes.first_overflow_output == 0);

  problem.d.codes[1] = 0x7c00;  // another order of these may overflow
  CHECK(answer(problem).classes.count(Kind::real_bug) == 0);
}

TEST_CASE("explain_gemm: an infinity that no order of sums makes is a real bug") {
  Problem problem = planted(hopper_in_slices(48), binary16);
  problem.d.codes[3] = 0xfc00;
  const Answer result = answer(problem);
  CHECK(result.classes.name() == "real_bug");
  CHECK(result.classes.overflowed == 1);
  CHECK(!result.classes.first_overflow_at);
}

/// Contiguous slices of k.
Slices even_slices(std::size_t depth, std::size_t length) {
  Slices slices;
  for (std::size_t first = 0; first < depth; first += length)
    slices.push_back({{first, std::min(length, depth - first)}});
  return slices;
}

TEST_CASE("explain_gemm: a sum leaves the range in its slice or with those before it") {
  Problem problem = random_problem(binary16, 8, 1, 1);
  std::ranges::fill(problem.a, 0x5c00);  // 256
  std::ranges::fill(problem.b, 0x5400);  // 64: products of 16384, of which four are 65536
  CHECK(first_overflow(problem, 0, even_slices(8, 8)) == 3);
  CHECK(first_overflow(problem, 0, even_slices(8, 4)) == 3);
  CHECK(first_overflow(problem, 0, even_slices(8, 2)) == 3);  // 32768 + 32768
  CHECK(first_overflow(problem, 0, even_slices(8, 3)) == 5);  // 49152 is in the range, twice that is not
  problem.b[3] = 0xd400;
  CHECK(first_overflow(problem, 0, even_slices(8, 8)) == 5);
  std::ranges::fill(problem.b, 0x4c00);
  CHECK(!first_overflow(problem, 0, even_slices(8, 8)));
}

TEST_CASE("explain_gemm: bounds hold for all hypotheses of their arithmetic, and are not vacuous") {
  const struct { float alpha, beta; } factors[] = {{0.7f, 0}, {1, 1}, {-0.013f, 3.3f}};
  test::SilentRun silent;
  for (const std::size_t depth : {1, 7, 96, 300}) {
    for (const auto& [alpha, beta] : factors) {
      Problem problem = random_problem(binary32, depth, 5, 6);
      problem.a[0] = 0x0001;  // subnormal, by which tensor cores do not align
      problem.b[0] = 0x03ff;
      problem.alpha = alpha;
      problem.beta = beta;
      for (std::size_t i = 0; beta != 0 && i < problem.outputs(); ++i)
        problem.c.push_back(0.1f * static_cast<float>(i) - 1);
      for (const fp16::Format& format : {binary32, binary16}) {
        problem.d.format = format;
        std::vector<ExactOutput> exact;
        for (std::size_t output = 0; output < problem.outputs(); ++output)
          exact.push_back(exact_output(problem, output));
        double closest = 0;
        for (const Hypothesis& hypothesis : hypotheses(problem, 16)) {
          const std::vector<std::uint32_t> codes = predicted(problem, hypothesis, silent.run);
          for (std::size_t output = 0; output < codes.size(); ++output) {
            const double error = std::fabs(value_of(format, codes[output]) - exact[output].value);
            const double bound = error_bound(problem, arithmetic_of(hypothesis), exact[output], 16);
            closest = std::max(closest, error / bound);
            if (error > bound) FAIL(hypothesis.text() << " output " << output);
          }
        }
        INFO(depth, " ", alpha, " ", closest);
        CHECK(closest > 0.003);
      }
    }
  }
  Problem problem = random_problem(binary32, 500, 8, 8);
  const ExactOutput exact = exact_output(problem, 9);
  CHECK(error_bound(problem, Arithmetic::fp32, exact, 16) < (4.0 * 500 + 300) * 0x1p-24 * exact.magnitudes);
}

TEST_CASE("explain_gemm: the bound is where rounding ends and a bug begins") {
  Problem problem = planted(hopper_in_slices(48), binary32);
  const std::size_t output = 77;
  const ExactOutput exact = exact_output(problem, output);
  const double bound = error_bound(problem, Arithmetic::fp32, exact, 16);
  for (const double share : {-1.05, -0.95, 0.95, 1.05}) {
    const auto observed = static_cast<float>(exact.value + share * bound);
    problem.d.codes[output] = std::bit_cast<std::uint32_t>(observed);
    INFO(share);
    CHECK(answer(problem).classes.name() == (std::fabs(share) < 1 ? "rounding_only" : "real_bug"));
  }
}

TEST_CASE("explain_gemm: the bound knows that tensor cores do not align by subnormal operands") {
  // 2^-24 * 2^15 is aligned as 2^1, so that Hopper's 25 bits do not hold the other products, 2^-25.
  Problem problem = random_problem(binary32, 16, 1, 1);
  std::ranges::fill(problem.a, 0x0400);
  std::ranges::fill(problem.b, 0x1000);
  problem.a[0] = 0x0001;
  problem.b[0] = 0x7800;
  plant(problem, [](auto a, auto b, std::size_t) {
    return oracle::gemm::dot({oracle::gemm::tensor_core(hopper32, Output::binary32), 16}, a, b);
  });
  CHECK(problem.d.codes[0] == 0x3b000000);  // 2^-9
  const ExactOutput exact = exact_output(problem, 0);
  CHECK(exact.value == 0x1p-9 + 15 * 0x1p-25);
  CHECK(error_bound(problem, Arithmetic::fp32, exact, 1) > 15 * 0x1p-25);
}

TEST_CASE("explain_gemm: large problems are searched on samples, with the same answer for any threads") {
  Problem problem = random_problem(binary16, 256, 300, 280);
  const auto all = hypotheses(problem, 16);
  const auto planted_one = std::ranges::find_if(all, [](const Hypothesis& hypothesis) {
    return hypothesis.accumulator->name == "hopper/blackwell_fp32" && hypothesis.slices == 4 &&
           hypothesis.reduction == Reduction::fp32;
  });
  REQUIRE(planted_one != all.end());
  test::SilentRun silent;
  problem.d.codes = predicted(problem, *planted_one, silent.run);
  problem.d.codes[12345] ^= 0x0200;
  const Answer one = answer(problem, 1), two = answer(problem, 2);
  CHECK(one.best().text() == planted_one->text());
  CHECK(one.found.best().outputs == problem.outputs());
  CHECK(one.found.best().unexplained() == 1);
  CHECK(one.classes.name() == "real_bug");
  CHECK(std::ranges::any_of(one.found.tried,
                            [&](const Tried& tried) { return tried.outputs < problem.outputs(); }));
  for (std::size_t i = 0; i < one.found.tried.size(); i += 50) {
    const Tried& tried = one.found.tried[i];
    REQUIRE(tried.first_unexplained);
    const std::size_t output = *tried.first_unexplained;
    CHECK(predicted(problem, tried.hypothesis, silent.run)[output] != problem.d.codes[output]);
  }
  REQUIRE(one.found.verified == two.found.verified);
  for (std::size_t i = 0; i < one.found.tried.size(); ++i) {
    CHECK(one.found.tried[i].explained == two.found.tried[i].explained);
    CHECK(one.found.tried[i].first_unexplained == two.found.tried[i].first_unexplained);
  }
}

TEST_CASE("explain_gemm: NaNs explain each other, zeros of different sign do not") {
  CHECK(explains(binary16, 0x7fff, 0xfe00));
  CHECK(explains(binary32, 0x7fffffff, 0x7fc00000));
  CHECK(!explains(binary16, 0x7fff, 0x7c00));
  CHECK(!explains(binary16, 0x0000, 0x8000));
  CHECK(explains(binary16, 0x8000, 0x8000));

  Problem problem = planted({oracle::gemm::fp32_chain(), whole}, binary32);
  problem.a[2 * problem.depth + 5] = 0x7e01;
  for (std::size_t j = 0; j < problem.columns; ++j)
    problem.d.codes[2 * problem.columns + j] = 0xffc00000 + static_cast<std::uint32_t>(j);
  const Answer result = answer(problem);
  CHECK(result.found.candidates() == 1);
  CHECK(result.best().accumulator->name == "fp32_fma_chain");
  CHECK(result.classes.name() == "none");
  CHECK(result.classes.from_operands == problem.columns);
  CHECK(result.classes.first_from_operands == 2 * problem.columns);

  problem.d.codes[2 * problem.columns + 3] = 0;
  const Answer lost = answer(problem);
  CHECK(lost.classes.name() == "real_bug");
  CHECK(bug_line({problem, lost.found, lost.classes}).ends_with("exact value NaN since A[2][5] is NaN"));
}

TEST_CASE("explain_gemm: the example is what it says") {
  const Answer result = answer(example_problem(128, 3));
  const std::vector<Hypothesis> candidates = candidates_of(result);
  CHECK(std::ranges::any_of(candidates, [](const Hypothesis& hypothesis) {
    return hypothesis.accumulator->name == "hopper/blackwell_fp32" && hypothesis.slice_length == 32 &&
           hypothesis.reduction == Reduction::fp32;
  }));
}
