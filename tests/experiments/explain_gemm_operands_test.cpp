#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "experiments/explain_gemm/findings.h"
#include "experiments/explain_gemm/mistake.h"
#include "experiments/explain_gemm/tree_file.h"
#include "experiments/frame/tensor_files/element_type.h"
#include "experiments/frame/tensor_files/safetensors.h"
#include "tests/experiments/explain_gemm_problems.h"
#include "tests/temporary_directory.h"

namespace {

using namespace test::gemm;
using fp16::bfloat16;

/// To nearest-even: a float without its lower 16 bits, by integers.
float to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
}

float to_tf32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000);
}

float cut_to_tf32(float value) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xffffe000);
}

std::uint32_t code_in(const fp16::Format& format, float value) {
  if (format == binary16) return code_of(binary16, value);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return format == bfloat16 ? std::bit_cast<std::uint32_t>(to_bfloat16(value)) >> 16 : bits;
}

/// Normal numbers in bfloat16 or binary32, D of zeros.
Problem problem_in(const fp16::Format& operands, const fp16::Format& d, std::size_t depth = 96) {
  Problem problem = random_problem(d, depth, 24, 40);
  std::mt19937 generator(5);
  std::normal_distribution<float> normal;
  for (Floats* operand : {&problem.a, &problem.b}) {
    for (float& value : *operand)
      value = operands == bfloat16 ? to_bfloat16(normal(generator)) : normal(generator);
  }
  problem.operands = operands;
  return problem;
}

float chain(const Problem& problem, std::size_t output, std::size_t first, std::size_t last) {
  float sum = 0;
  for (std::size_t k = first; k < last; ++k)
    sum = std::fma(problem.a_of(output, k), problem.b_of(output, k), sum);
  return sum;
}

template <class Sum>
void write_d(Problem& problem, const Sum& sum) {
  for (std::size_t i = 0; i < problem.outputs(); ++i) problem.d.codes[i] = code_in(problem.d.format, sum(i));
}

Findings findings_of(const Problem& problem) {
  Answer result = answer(problem);
  const std::optional<Mistake> mistake = mistake_of(problem, result.classes);
  return {problem, std::move(result.found), std::move(result.classes), mistake};
}

}  // namespace

TEST_CASE("explain_gemm: chains of bfloat16 and FP32 operands are explained, whole and in slices") {
  for (const fp16::Format& operands : {bfloat16, binary32}) {
    for (const fp16::Format& d : {binary32, bfloat16}) {
      for (const std::size_t length : {std::size_t{96}, std::size_t{32}}) {
        Problem problem = problem_in(operands, d);
        write_d(problem, [&](std::size_t output) {
          float sum = chain(problem, output, 0, length);
          for (std::size_t first = length; first < problem.depth; first += length)
            sum += chain(problem, output, first, first + length);
          return sum;
        });
        const Answer result = answer(problem);
        INFO(fp16::name_of(operands), " to ", fp16::name_of(d), " in slices of ", length, ": ",
             result.best().text());
        CHECK(result.found.best().unexplained() == 0);
        CHECK(result.best().accumulator->name == "fp32_fma_chain");
        const std::vector<Hypothesis> candidates = candidates_of(result);
        CHECK(std::ranges::find(candidates, length, &Hypothesis::slice_length) != candidates.end());
        if (d == binary32) CHECK(verdict_of(result) == Verdict::explained);
        CHECK(result.classes.name() == "none");
      }
    }
  }
}

TEST_CASE("explain_gemm: FP32 products that are rounded before they are added are told from fused ones") {
  for (const std::size_t length : {std::size_t{96}, std::size_t{32}}) {
    Problem problem = problem_in(binary32, binary32);
    write_d(problem, [&](std::size_t output) {
      float sum = 0;
      for (std::size_t first = 0; first < problem.depth; first += length) {
        float slice = 0;
        for (std::size_t k = first; k < first + length; ++k) {
          const float product = problem.a_of(output, k) * problem.b_of(output, k);
          slice += product;
        }
        sum += slice;
      }
      return sum;
    });
    const Answer result = answer(problem);
    CHECK(verdict_of(result) == Verdict::explained);
    CHECK(result.best().accumulator->name == "fp32_mul_add_chain");
    CHECK(result.best().slice_length == length);
  }
}

TEST_CASE("explain_gemm: sums that were stored in bfloat16 are told, and in another order are no bug") {
  Problem problem = problem_in(bfloat16, bfloat16);
  const auto slice = [&](std::size_t output, std::size_t i) {
    return to_bfloat16(chain(problem, output, 24 * i, 24 * i + 24));
  };
  write_d(problem, [&](std::size_t output) {
    float sum = slice(output, 0);
    for (std::size_t i = 1; i < 4; ++i) sum = to_bfloat16(sum + slice(output, i));
    return sum;
  });
  const Answer told = answer(problem);
  CHECK(told.found.best().unexplained() == 0);
  CHECK(told.best().text() == "fp32_fma_chain, k in 4 slices of 24 reduced by bfloat16");

  write_d(problem, [&](std::size_t output) {  // 1 and 3, then 0 and 2
    return to_bfloat16(to_bfloat16(slice(output, 1) + slice(output, 3)) +
                       to_bfloat16(slice(output, 0) + slice(output, 2)));
  });
  const Findings other = findings_of(problem);
  CHECK(other.explanation.best().unexplained() > 0);
  CHECK(other.classification.count(Kind::real_bug) == 0);
  CHECK(!other.mistake);

  problem.d.codes[77] = 0x447a;  // 1000
  const Findings wrong = findings_of(problem);
  CHECK(wrong.classification.count(Kind::real_bug) == 1);
  CHECK(bug_line(wrong).find("every order of sums in bfloat16_reduction; first D[1][37]") !=
        std::string::npos);
}

TEST_CASE("explain_gemm: hypotheses of operands other than FP16 have no tensor cores and no FP16") {
  for (const fp16::Format& operands : {bfloat16, binary32}) {
    for (const Hypothesis& hypothesis : hypotheses(problem_in(operands, binary32), 4)) {
      const std::string& name = hypothesis.accumulator->name;
      CHECK((name == "fp32_fma_chain" || (name == "fp32_mul_add_chain" && operands == binary32)));
      const bool is_narrow =
          hypothesis.reduction != Reduction::none && hypothesis.reduction != Reduction::fp32;
      CHECK((operands == bfloat16 || !is_narrow));
    }
  }
}

TEST_CASE("explain_gemm: bounds hold where D is narrower than operands of FP32 or bfloat16") {
  const struct { float alpha, beta; } factors[] = {{0.7f, 0}, {1, -1}, {-0.013f, 3.3f}, {512, 1}};
  test::SilentRun silent;
  for (const fp16::Format& operands : {bfloat16, binary32}) {
    for (const fp16::Format& d : {binary16, bfloat16}) {
      for (const auto& [alpha, beta] : factors) {
        for (const float scale : {1.0f, 0x1p-20f}) {  // of D in FP16: normal numbers, and subnormal ones
          Problem problem = problem_in(operands, d);
          problem.alpha = alpha, problem.beta = beta;
          for (float& value : problem.a) value *= scale;
          // What cancels leaves the roundings.
          for (std::size_t output = 0; beta != 0 && output < problem.outputs(); ++output)
            problem.c.push_back(to_bfloat16(-alpha / beta * chain(problem, output, 0, problem.depth)));
          for (const Hypothesis& hypothesis : hypotheses(problem, 4)) {
            const std::vector<std::uint32_t> codes = predicted(problem, hypothesis, silent.run);
            for (std::size_t output = 0; output < codes.size(); ++output) {
              const ExactOutput exact = exact_output(problem, output);
              const double error = std::fabs(value_of(d, codes[output]) - exact.value);
              if (error > error_bound(problem, arithmetic_of(hypothesis), exact, 4))
                FAIL(fp16::name_of(operands)
                     << " to " << fp16::name_of(d) << ", " << hypothesis.text() << " output " << output);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("explain_gemm: an FP32 product that is rounded to FP16 before C is added is no bug") {
  Problem problem = problem_in(binary32, binary16, 512);
  problem.beta = 1;
  for (std::size_t output = 0; output < problem.outputs(); ++output)
    problem.c.push_back(rounded_to(binary16, -chain(problem, output, 0, problem.depth) + 0.015625f));
  write_d(problem, [&](std::size_t output) {
    const float sum = chain(problem, output, 0, problem.depth), nearest = rounded_to(binary16, sum);
    // Another order of the same sums may lie on the other side of the tie between two halves.
    const std::uint32_t code = code_of(binary16, nearest) + (std::fabs(nearest) < std::fabs(sum) ? 1 : -1);
    return (output % 100 == 0 ? static_cast<float>(value_of(binary16, code)) : nearest) + problem.c[output];
  });
  const Findings found = findings_of(problem);
  CHECK(found.explanation.best().unexplained() > 0);
  CHECK(found.classification.count(Kind::real_bug) == 0);
  CHECK(!found.mistake);
}

TEST_CASE("explain_gemm: FP32 sums beyond FP16's range before a small alpha are an overflow") {
  Problem problem = problem_in(binary32, binary16);
  std::ranges::fill(problem.a, 30.0f);
  std::ranges::fill(problem.b, 31.0f);  // sums of 89280
  problem.alpha = 0.5f;
  std::ranges::fill(problem.d.codes, 0x7c00);
  const Findings found = findings_of(problem);
  CHECK(found.classification.count(Kind::real_bug) == 0);
  CHECK(found.classification.overflowed == problem.outputs());
  CHECK(!found.mistake);
  CHECK(answer(problem).best().epilogue == Epilogue::half_scale);
  test::SilentRun silent;
  write_verdict(silent.record, found);
  CHECK(silent.record.verdict().find("leaves FP32's range: rounded to FP16 before the epilogue, one may.") !=
        std::string::npos);
}

TEST_CASE("explain_gemm: FP32 operands that were rounded before they were multiplied are named") {
  const struct {
    const char* name;
    float (*rounded)(float);
  } rows[]{{"tf32_or_fp16", to_tf32}, {"tf32_truncated", cut_to_tf32}, {"bfloat16", to_bfloat16}};
  for (const std::size_t depth : {96, 1024}) {
    for (const auto& row : rows) {
      const Problem problem = problem_in(binary32, binary32, depth);
      Problem narrowed = problem;
      for (Floats* operand : {&narrowed.a, &narrowed.b}) {
        for (float& value : *operand) value = row.rounded(value);
      }
      Problem asked = problem;
      write_d(asked, [&](std::size_t output) { return chain(narrowed, output, 0, depth); });
      const Findings found = findings_of(asked);
      REQUIRE(found.mistake);
      CHECK(found.mistake->name == row.name);
      write_d(asked, [&](std::size_t output) { return chain(problem, output, 0, depth); });
      CHECK(!findings_of(asked).mistake);
    }
  }
}

TEST_CASE(
    "explain_gemm: operands rounded to FP16 are told from those rounded to TF32 where FP16 has no room") {
  const auto to_fp16 = [](float value) { return rounded_to(binary16, value); };
  for (const auto& [name, rounded] :
       {std::pair<const char*, std::function<float(float)>>{"fp16", to_fp16}, {"tf32", to_tf32}}) {
    Problem problem = problem_in(binary32, binary32, 256);
    for (float& value : problem.a) value *= 0x1p-12f;
    Problem narrowed = problem;
    for (Floats* operand : {&narrowed.a, &narrowed.b})
      std::ranges::transform(*operand, operand->begin(), rounded);
    write_d(problem, [&](std::size_t output) { return chain(narrowed, output, 0, problem.depth); });
    const Findings found = findings_of(problem);
    REQUIRE(found.mistake);
    CHECK(found.mistake->name == name);
  }
}

TEST_CASE("explain_gemm: sums that are cut off are told from rounded ones") {
  for (const fp16::Format& operands : {binary16, bfloat16}) {
    Problem problem = operands == binary16 ? random_problem(bfloat16) : problem_in(bfloat16, bfloat16);
    for (std::size_t i = 0; i < problem.outputs(); ++i)
      problem.d.codes[i] = std::bit_cast<std::uint32_t>(chain(problem, i, 0, problem.depth)) >> 16;
    const Findings found = findings_of(problem);
    REQUIRE(found.mistake);
    CHECK(found.mistake->name == "truncated");
  }
}

TEST_CASE("explain_gemm: FP32 sums that leave FP32's range are an overflow with its first k") {
  Problem problem = problem_in(binary32, binary32, 32);
  for (std::size_t k = 0; k < problem.depth; ++k) {
    problem.a[k] = 0x1p64f;
    for (std::size_t j = 0; j < problem.columns; ++j)
      problem.b[k * problem.columns + j] = k < 16 ? 0x1p60f : -0x1p60f;
  }
  write_d(problem, [&](std::size_t output) { return chain(problem, output, 0, problem.depth); });
  const Findings found = findings_of(problem);
  CHECK(found.classification.overflowed == problem.columns);
  CHECK(found.classification.first_overflow_at == 15);
  CHECK(found.classification.name() == "accumulator_overflow");
}

TEST_CASE("explain_gemm: operands are of the narrowest format that holds them, however they are stored") {
  const test::TemporaryDirectory directory;
  const auto read = [&](const Problem& problem) {
    const auto file = [&](const char* name, std::size_t rows, std::size_t columns, const Floats& values) {
      write_matrix(directory / name, {binary32, rows, columns, bits_of(values)});
      return (directory / name).string();
    };
    return read_problem({.a = file("a.npy", problem.rows, problem.depth, problem.a),
                         .b = file("b.npy", problem.depth, problem.columns, problem.b),
                         .d = file("d.npy", problem.rows, problem.columns, Floats(problem.outputs()))});
  };
  CHECK(read(random_problem(binary32)).operands == binary16);
  CHECK(read(problem_in(bfloat16, bfloat16)).operands == bfloat16);
  CHECK(read(problem_in(bfloat16, binary32)).operands == bfloat16);
  CHECK(read(problem_in(binary32, binary32)).operands == binary32);
  const Problem problem = problem_in(bfloat16, binary32);
  CHECK(read(problem).a == problem.a);
  CHECK(read(problem).b == problem.b);

  namespace files = experiments::tensor_files;
  const std::vector<std::uint16_t> codes{0x3f80, 0x4049, 0xc2f7, 0x0001};
  files::write_safetensors(directory / "w.safetensors", {{.name = "w",
                                                          .type = files::type_of_format("bfloat16"),
                                                          .shape = {2, 2},
                                                          .data = std::as_bytes(std::span(codes))}});
  const Matrix stored = read_matrix((directory / "w.safetensors").string() + ":w");
  CHECK(stored.format == bfloat16);
  CHECK(stored.codes == std::vector<std::uint32_t>{codes.begin(), codes.end()});
}

TEST_CASE("explain_gemm: a tree that was handed over is tried, in FP32 and FP16") {
  constexpr std::size_t depth = 12;
  // ((0 + 6) + (1 + 7)) + ... as no slices give it: three lanes of four, folded crosswise.
  const fp16::SummationTree tree{.leaves = depth,
                                 .nodes = {{0, 5},
                                           {1, 7},
                                           {2, 9},
                                           {3, 11},
                                           {4, 6},
                                           {8, 10},
                                           {12, 17},
                                           {13, 16},
                                           {14, 15},
                                           {18, 20},
                                           {19, 21}}};
  for (const fp16::Format& operands : {binary16, binary32}) {
    Problem problem = operands == binary16 ? random_problem(binary32, depth, 24, 40)
                                           : problem_in(binary32, binary32, depth);
    write_d(problem, [&](std::size_t output) {
      std::vector<float> sums;
      for (std::size_t k = 0; k < depth; ++k)
        sums.push_back(problem.a_of(output, k) * problem.b_of(output, k));
      for (const auto& node : tree.nodes) sums.push_back(sums[node[0]] + sums[node[1]]);
      return sums.back();
    });
    CHECK(answer(problem).found.best().unexplained() > 0);
    problem.tree = tree;
    const Answer told = answer(problem);
    CHECK(told.best().text() == "tree_fp32");
    CHECK(verdict_of(told) == Verdict::explained);
    const auto in_fp16 = [&](const Hypothesis& hypothesis) { return hypothesis.text() == "tree_fp16"; };
    CHECK(std::ranges::any_of(hypotheses(problem, 2), in_fp16) == (operands == binary16));
  }
}

TEST_CASE("explain_gemm: a tree's file reads back, and what is none is refused in one line") {
  const test::TemporaryDirectory directory;
  const std::filesystem::path file = directory / "tree.json";
  for (const fp16::SummationTree& tree :
       {fp16::SummationTree{1, {}}, fp16::SummationTree{3, {{0, 1}, {2, 3}}},
        fp16::SummationTree{4, {{0, 1, 2, 3}}}}) {
    write_tree(file, tree);
    CHECK(read_tree(file) == tree);
  }
  const struct {
    const char* text;
    const char* fault;
  } rows[]{
      {"", "holds no tree"},
      {"[]", "holds no tree"},
      {R"({"terms": -1, "nodes": []})", "holds no tree"},
      {R"({"terms": 2, "nodes": [[0, "1"]]})", "holds no tree"},
      {R"({"terms": 2, "nodes": [[0, 1]], "order": 1})", "the key 'order' is unknown"},
      {R"({"nodes": []})", "has no terms"},
      {R"({"terms": 1152921504606846976, "nodes": [[0, 1]]})", "has not every term"},
      {R"({"terms": 3, "nodes": []})", "has not as many nodes"},
      {R"({"terms": 3, "nodes": [[0, 1], [2, 3], [4]]})", "has not as many nodes"},
      {R"({"terms": 3, "nodes": [[0, 3], [2, 1]]})", "adds 3 in node 0, before it is there"},
      {R"({"terms": 3, "nodes": [[0, 1], [1, 3]]})", "adds 1 twice"},
      {R"({"terms": 3, "nodes": [[0, 1, 2], [3]]})", "has fewer than two children in node 1"},
      {R"({"terms": 3, "nodes": [[0, 1], [2, 9]]})", "adds 9 in node 1"},
  };
  for (const auto& row : rows) {
    std::ofstream(file) << row.text;
    INFO(row.text);
    CHECK_THROWS_WITH(read_tree(file), doctest::Contains(row.fault));
  }
  CHECK_THROWS_WITH(read_tree(directory / "none.json"), doctest::Contains("cannot be read"));
}
