/// What a hypothesis leaves unexplained is rounding, an overflow or a bug, by bounds that hold for every order of sums.

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "experiments/explain_gemm/findings.h"
#include "fp16/exact_accumulator.h"
#include "tests/experiments/explain_gemm_problems.h"

using namespace test::gemm;

TEST_CASE("explain_gemm: exact outputs are those of the exact accumulator, whatever cancels") {
  for (const std::uint64_t seed : {1, 2, 3}) {
    Problem problem = random_problem(binary32, 64, 8, 8);
    std::mt19937_64 generator(seed);
    for (Floats* operand : {&problem.a, &problem.b}) {
      for (float& value : *operand) value = test::half_of(generator() & 0xfbff);  // all finite ones
    }
    for (std::size_t i = 0; i < 8; ++i) {  // the largest products cancel, the smallest are left
      const std::size_t row = i * problem.depth;
      problem.a[row] = problem.a[row + 1] = test::half_of(0x7bff);
      problem.b[i] = test::half_of(0x7bff);
      problem.b[problem.columns + i] = test::half_of(0xfbff);
      problem.a[row + 2] = test::half_of(0x0001);
      problem.b[2 * problem.columns + i] = test::half_of(0x8001);
    }
    for (std::size_t output = 0; output < problem.outputs(); ++output) {
      fp16::ExactAccumulator<binary16> sum;
      for (std::size_t k = 0; k < problem.depth; ++k)
        sum.add_product(fp16::float_to_half_bits(problem.a_of(output, k)),
                        fp16::float_to_half_bits(problem.b_of(output, k)));
      CHECK(exact_output(problem, output).value == std::bit_cast<double>(sum.rounded<fp16::binary64>().bits));
    }
  }
}

TEST_CASE("explain_gemm: one wrong output is a real bug at its place, and the others are still explained") {
  for (const fp16::Format& format : {binary16, binary32}) {
    Problem problem = planted(hopper_in_slices(48), format);
    const std::size_t wrong = 5 * problem.columns + 7;
    std::uint32_t& code = problem.d.codes[wrong];
    code ^= format == binary16 ? 0x0200 : 0x00400000;  // the leading bit after the point
    const Answer result = answer(problem);
    CHECK(verdict_of(result) == Verdict::unexplained);
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
      exact += double{problem.a[5 * problem.depth + k]} * double{problem.b[k * problem.columns + 7]};
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
  std::ranges::fill(problem.a, test::half_of(0x5400));  // 64
  std::ranges::fill(problem.b, test::half_of(0x5420));  // 66: sums of 67584 / 2
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
  for (Floats* operand : {&problem.a, &problem.b}) std::ranges::fill(*operand, test::half_of(0x3c00));
  std::ranges::fill(problem.d.codes, 0x5600);  // 96
  CHECK(step_of(problem).starts_with("Next: to tell them apart let the kernel store D in FP32"));
  std::ranges::fill(problem.a, test::half_of(0x7bff));
  std::ranges::fill(problem.d.codes, 0x7c00);
  CHECK(step_of(problem).starts_with("Next: store D in FP32, or scale A or B down"));
  CHECK(answer(problem).classes.beyond_range.count == problem.outputs());
  CHECK(answer(problem).classes.beyond_range.first == 0);
}

TEST_CASE("explain_gemm: zeros of the wrong sign are not said to come from another order") {
  Problem problem = random_problem(binary32, 8, 8, 8);
  std::ranges::fill(problem.a, 0.0f);
  std::ranges::fill(problem.b, test::half_of(0x3c00));
  std::ranges::fill(problem.d.codes, 0x80000000);
  const Answer result = answer(problem);
  test::SilentRun silent(1);
  write_verdict(silent.record, {problem, result.found, result.classes});
  CHECK(silent.record.verdict().find("Only signs of zeros: 64 outputs are each a zero of the other sign") !=
        std::string::npos);
}

TEST_CASE("explain_gemm: an order that is not in the list is rounding only") {
  for (const fp16::Format& format : {binary16, binary32}) {
    Problem problem = random_problem(format, 512, 40, 48);
    plant(problem, interleaved);
    const Answer result = answer(problem);
    CHECK(verdict_of(result) == Verdict::unexplained);
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
  CHECK(verdict_of(result) == Verdict::unexplained);
  CHECK(!result.classes.majority);
  CHECK(result.classes.name() == "undecided");
  CHECK(result.classes.count(Kind::real_bug) == 0);
  CHECK(result.classes.count(Kind::undecided) > 0);
  CHECK(!result.classes.is_far_off());
}

TEST_CASE("explain_gemm: an accumulator's overflow is named with its first k") {
  // Products of 1024: the 64th sum is 65536. What follows brings the exact sum back into the range.
  Problem problem = random_problem(binary16, 128, 2, 3);
  std::ranges::fill(problem.a, test::half_of(0x5000));  // 32
  for (std::size_t k = 0; k < problem.depth; ++k) {
    for (std::size_t j = 0; j < problem.columns; ++j)
      problem.b[k * problem.columns + j] = k < 80 ? test::half_of(0x5000) : test::half_of(0xd000);
  }
  for (std::size_t k = 0; k < problem.depth; ++k)
    problem.b[k * problem.columns + 1] = k % 2 ? test::half_of(0x5000) : test::half_of(0xd000);
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
  CHECK(result.classes.overflowed == 0);
  CHECK(!result.classes.first_overflow_at);
}

TEST_CASE("explain_gemm: products that overflow before a small alpha are no bug") {
  Problem problem = random_problem(binary16, 128, 2, 3);
  std::ranges::fill(problem.a, test::half_of(0x5000));  // 32
  std::ranges::fill(problem.b, test::half_of(0x5000));  // sums of 131072, which no half is
  problem.alpha = 0.25f;
  std::ranges::fill(problem.d.codes, 0x7800);  // 32768
  problem.d.codes[4] = 0x7e00;
  const Answer result = answer(problem);
  CHECK(result.classes.count(Kind::real_bug) == 0);
  CHECK(result.classes.count(Kind::overflow) == 1);
  CHECK(result.classes.overflowed == 1);
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
  std::ranges::fill(problem.a, test::half_of(0x5c00));  // 256
  std::ranges::fill(problem.b, test::half_of(0x5400));  // 64: products of 16384, of which four are 65536
  CHECK(first_overflow(problem, 0, even_slices(8, 8)) == 3);
  CHECK(first_overflow(problem, 0, even_slices(8, 4)) == 3);
  CHECK(first_overflow(problem, 0, even_slices(8, 2)) == 3);  // 32768 + 32768
  CHECK(first_overflow(problem, 0, even_slices(8, 3)) == 5);  // 49152 is in the range, twice that is not
  problem.b[3] = test::half_of(0xd400);
  CHECK(first_overflow(problem, 0, even_slices(8, 8)) == 5);
  std::ranges::fill(problem.b, test::half_of(0x4c00));
  CHECK(!first_overflow(problem, 0, even_slices(8, 8)));
}

TEST_CASE("explain_gemm: bounds hold for all hypotheses of their arithmetic, and are not vacuous") {
  const struct { float alpha, beta; } factors[] = {{0.7f, 0}, {1, 1}, {-0.013f, 3.3f}};
  test::SilentRun silent;
  for (const std::size_t depth : {1, 7, 96, 300}) {
    for (const auto& [alpha, beta] : factors) {
      Problem problem = random_problem(binary32, depth, 5, 6);
      problem.a[0] = test::half_of(0x0001);  // subnormal, by which tensor cores do not align
      problem.b[0] = test::half_of(0x03ff);
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
  std::ranges::fill(problem.a, test::half_of(0x0400));
  std::ranges::fill(problem.b, test::half_of(0x1000));
  problem.a[0] = test::half_of(0x0001);
  problem.b[0] = test::half_of(0x7800);
  plant(problem, [](auto a, auto b, std::size_t) {
    return oracle::gemm::dot({oracle::gemm::tensor_core(hopper32, Output::binary32), 16}, a, b);
  });
  CHECK(problem.d.codes[0] == 0x3b000000);  // 2^-9
  const ExactOutput exact = exact_output(problem, 0);
  CHECK(exact.value == 0x1p-9 + 15 * 0x1p-25);
  CHECK(error_bound(problem, Arithmetic::fp32, exact, 1) > 15 * 0x1p-25);
}
