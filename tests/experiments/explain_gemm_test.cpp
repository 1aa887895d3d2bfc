/// Matrix products whose arithmetic is known are explained by that arithmetic.

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "experiments/explain_gemm/findings.h"
#include "tests/experiments/explain_gemm_problems.h"

using namespace test::gemm;
using test::random_halves;

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
       Reduction::narrow_partials},
      {"fp32_fma_chain", {oracle::gemm::fp32_chain(), 24, FixedReduction::fp16}, Reduction::narrow},
      {"fp16_fma_chain", {oracle::gemm::fp16_fma_chain(), 48}, Reduction::fp32},
      {"fp16_mul_add_chain",
       {oracle::gemm::fp16_mul_add_chain(), 20, FixedReduction::fp16},
       Reduction::narrow},
      {"volta_fp32", {tensor_core(volta32, single), 16}, Reduction::fp32},
      {"turing/ampere/ada_fp32", {tensor_core(ampere32, single), 48}, Reduction::fp32},
      {"hopper/blackwell_fp32", hopper_in_slices(32), Reduction::fp32},
      {"hopper/blackwell_fp32", hopper_in_slices(64), Reduction::fp32},
      {"hopper/blackwell_fp16", {tensor_core(hopper16, half), 32}, Reduction::fp32},
      {"hopper/blackwell_fp32", {hopper, 16, FixedReduction::fp32, true}, Reduction::fp32},
      {"volta_fp32", {tensor_core(volta32, single), 24, FixedReduction::fp32, true}, Reduction::fp32},
      {"fp32_fma_chain", {oracle::gemm::fp32_chain(), 20, FixedReduction::fp16, true}, Reduction::narrow},
      {"hopper/blackwell_fp32", in_turn(hopper, 16, 2), Reduction::fp32, Slicing::interleaved},
      {"hopper/blackwell_fp32", in_turn(hopper, 16, 4), Reduction::fp32, Slicing::interleaved},
      {"hopper/blackwell_fp32", in_turn(hopper, 32, 2), Reduction::fp32, Slicing::interleaved},
      {"hopper/blackwell_fp32", in_turn(hopper, 16, 3), Reduction::fp32, Slicing::interleaved},
      {"fp32_fma_chain", in_turn(oracle::gemm::fp32_chain(), 8, 8), Reduction::fp32, Slicing::interleaved},
      {"fp16_fma_chain", in_turn(oracle::gemm::fp16_fma_chain(), 8, 2), Reduction::fp32,
       Slicing::interleaved},
      {"fp32_fma_chain", in_turn(oracle::gemm::fp32_chain(), 1, 16), Reduction::fp32, Slicing::interleaved},
      {"fp32_fma_chain", in_lanes(oracle::gemm::fp32_chain(), 1, 8), Reduction::fp32, Slicing::interleaved},
      {"fp32_fma_chain", in_lanes(oracle::gemm::fp32_chain(), 8, 4), Reduction::fp32, Slicing::interleaved},
      {"fp32_fma_chain", in_lanes(oracle::gemm::fp32_chain(), 2, 32), Reduction::fp32, Slicing::interleaved},
      {"fp32_fma_chain", in_lanes(oracle::gemm::fp32_chain(), 1, 64), Reduction::fp32, Slicing::interleaved},
      {"fp16_fma_chain", in_lanes(oracle::gemm::fp16_fma_chain(), 4, 4, FixedReduction::fp16),
       Reduction::narrow, Slicing::interleaved},
      {"hopper/blackwell_fp32", in_two(hopper, 32), Reduction::fp32, Slicing::uneven},
      {"turing/ampere/ada_fp32", in_two(tensor_core(ampere32, single), 80), Reduction::fp32, Slicing::uneven},
      {"fp16_fma_chain", in_two(oracle::gemm::fp16_fma_chain(), 16, FixedReduction::fp16), Reduction::narrow,
       Slicing::uneven},
  };
  for (const auto& row : rows) {
    const Answer result = answer(planted(row.recipe, binary32));
    INFO(row.accumulator, " ", row.recipe.slice_length, " ", name_of(row.reduction, binary16));
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
    if (row.reduction == Reduction::narrow_partials || row.reduction == Reduction::narrow) continue;
    CHECK(candidates.size() == 1);
    CHECK((candidates[0].order == Order::pairwise) == row.recipe.pairwise);
    CHECK((candidates[0].order == Order::halving) == row.recipe.halving);
    CHECK(verdict_of(result) == Verdict::explained);
  }
}

TEST_CASE("explain_gemm: lanes and warps take what is left of k in turn, in any order of their sums") {
  const auto reversed = [](std::size_t k) { return 7 - k % 8; };
  const struct {
    std::size_t depth, slices;
    Recipe recipe;
    std::string text;
  } rows[] = {
      {104, 2, in_turn(oracle::gemm::tensor_core(hopper32, Output::binary32), 16, 2),
       "hopper/blackwell_fp32, blocks of 16 k to 2 slices in turn reduced by fp32"},
      {200, 3, in_turn(oracle::gemm::tensor_core(hopper32, Output::binary32), 64, 3),
       "hopper/blackwell_fp32, blocks of 64 k to 3 slices in turn reduced by fp32"},
      {200, 12, in_turn(oracle::gemm::fp32_chain(), 8, 12),
       "fp32_fma_chain, blocks of 8 k to 12 slices in turn reduced by fp32"},
      {99, 8, in_lanes(oracle::gemm::fp32_chain(), 1, 8),
       "fp32_fma_chain, k to 8 lanes in turn reduced by fp32 halving"},
      {99, 16, in_lanes(oracle::gemm::fp32_chain(), 4, 16),
       "fp32_fma_chain, blocks of 4 k to 16 slices in turn reduced by fp32 halving"},
      {96,
       8,
       {.steps = oracle::gemm::fp32_chain(), .slice_length = 1, .slice_of = reversed},
       "fp32_fma_chain, k to 8 lanes in turn reduced by fp32 descending"},
  };
  for (const auto& row : rows) {
    Problem problem = random_problem(binary32, row.depth);
    plant(problem, [&](auto a, auto b, std::size_t) { return oracle::gemm::dot(row.recipe, a, b); });
    const std::vector<Hypothesis> candidates = candidates_of(answer(problem));
    REQUIRE(candidates.size() == 1);
    CHECK(candidates[0].text() == row.text);
    CHECK(candidates[0].slices == row.slices);
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
    const Reduction expected = fixed == FixedReduction::fp16_in_place   ? Reduction::narrow_in_place
                               : fixed == FixedReduction::fp16_partials ? Reduction::narrow_partials
                                                                        : Reduction::narrow;
    const Answer result = answer(problem);
    const std::vector<Hypothesis> candidates = candidates_of(result);
    CHECK(std::ranges::any_of(candidates, [](const Hypothesis& hypothesis) {
      return hypothesis.accumulator->name == "hopper/blackwell_fp32" && hypothesis.order == Order::ascending;
    }));
    for (const Hypothesis& candidate : candidates) {
      CHECK(candidate.reduction == expected);
      CHECK(candidate.slice_length == length);
    }
    CHECK(arithmetic_of(result.best()) == Arithmetic::narrow_reduction);
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

TEST_CASE(
    "explain_gemm: halves scaled by a power of two are told by subnormal numbers, and not tried without") {
  using oracle::gemm::exact;
  using oracle::gemm::nearest;
  const Recipe recipe{oracle::gemm::fp32_chain(), 96};
  for (const float alpha : {0x1p-18f, 0.5f}) {
    const Fixed factor = oracle::mma::fixed(alpha);
    for (const bool in_halves : {true, false}) {
      Problem problem = random_problem(binary16);
      problem.alpha = alpha;
      plant(problem, [&](auto a, auto b, std::size_t) {
        Fixed sum = exact(oracle::gemm::dot(recipe, a, b), Output::binary32);
        if (in_halves) sum = exact(nearest(sum, Output::binary16), Output::binary16);
        const Fixed d = exact(nearest(oracle::gemm::times(factor, sum), Output::binary16), Output::binary16);
        return nearest(d, Output::binary32);
      });
      const bool tells = alpha < 0.1f && in_halves;
      const auto is_half_scale = [](const Hypothesis& hypothesis) {
        return hypothesis.epilogue == Epilogue::half_scale;
      };
      INFO(alpha, in_halves ? " of halves" : " of floats");
      CHECK(std::ranges::any_of(hypotheses(problem, 4), is_half_scale) == tells);
      const std::vector<Hypothesis> candidates = candidates_of(answer(problem));
      CHECK(!candidates.empty());
      CHECK(std::ranges::all_of(candidates, is_half_scale) == tells);
    }
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
  CHECK(reductions(problem, Epilogue::round_once, binary32) ==
        Reductions{Reduction::fp32, Reduction::narrow});
  CHECK(reductions(problem, Epilogue::round_once, binary16) ==
        Reductions{Reduction::narrow, Reduction::narrow});
  problem.alpha = 0.7f;
  CHECK(reductions(problem, Epilogue::scale, binary32) ==
        Reductions{Reduction::fp32, Reduction::narrow_partials, Reduction::narrow});
  problem = random_problem(binary32, 32, 2, 2);
  CHECK(reductions(problem, Epilogue::round_once, binary32) ==
        Reductions{Reduction::fp32, Reduction::narrow_partials, Reduction::narrow});
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

TEST_CASE("explain_gemm: sums that are exact in every order are ambiguous") {
  Problem problem = random_problem(binary16, 32);
  for (Floats* operand : {&problem.a, &problem.b}) {
    for (float& value : *operand) value = fp16::float_to_half_bits(value) & 1 ? 1 : -2;
  }
  plant(problem, [&](auto a, auto b, std::size_t) {
    return oracle::gemm::dot({oracle::gemm::fp32_chain(), whole}, a, b);
  });
  const Answer result = answer(problem);
  CHECK(verdict_of(result) == Verdict::ambiguous);
  CHECK(result.found.candidates() == result.found.tried.size());
  CHECK(result.best().accumulator->name == "fp32_fma_chain");
  CHECK(result.best().slices == 1);
  CHECK(result.classes.name() == "none");
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
  problem.a[2 * problem.depth + 5] = test::half_of(0x7e01);
  for (std::size_t j = 0; j < problem.columns; ++j)
    problem.d.codes[2 * problem.columns + j] = 0xffc00000 + static_cast<std::uint32_t>(j);
  const Answer result = answer(problem);
  CHECK(result.found.candidates() == 1);
  CHECK(result.best().accumulator->name == "fp32_fma_chain");
  CHECK(result.classes.name() == "none");
  CHECK(result.classes.from_operands.count == problem.columns);
  CHECK(result.classes.from_operands.first == 2 * problem.columns);

  problem.d.codes[2 * problem.columns + 3] = 0;
  const Answer lost = answer(problem);
  CHECK(lost.classes.name() == "real_bug");
  CHECK(bug_line({problem, lost.found, lost.classes}).ends_with("exact value NaN since A[2][5] is NaN"));
}

TEST_CASE("explain_gemm: the example is what it says") {
  const Answer result = answer(example_problem(128, 3));
  CHECK(verdict_of(result) == Verdict::explained);
  CHECK(result.best().text() == "hopper/blackwell_fp32, k in 4 slices of 32 reduced by fp32");
}
