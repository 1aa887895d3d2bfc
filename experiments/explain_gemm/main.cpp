/// Which arithmetic made this matrix product?
///
/// Given A, B and D, searches over accumulators, slices of k, their reduction and the epilogue for what
/// reproduces every bit of D, and says of outputs that nothing reproduces whether rounding in another order
/// can make them, an accumulator overflowed, or they are wrong. Without files it explains a product of its
/// own; with --cublas those that cuBLAS makes of A and B, in every way it can be asked for them.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/explain_gemm/census_device.h"
#include "experiments/explain_gemm/census_record.h"
#include "experiments/explain_gemm/classification.h"
#include "experiments/explain_gemm/figures.h"
#include "experiments/explain_gemm/mistake.h"
#include "experiments/explain_gemm/npy.h"
#include "experiments/explain_gemm/problem.h"
#include "experiments/explain_gemm/record.h"
#include "experiments/explain_gemm/search.h"
#include "experiments/training/laboratory.h"

namespace experiments::explain_gemm {
namespace {

struct Options {
  Inputs inputs;
  SearchOptions search;
  CensusOptions census;
  int example_depth = 1024;
  std::uint64_t seed = 1;
};

void write_halves(const std::filesystem::path& file, std::size_t rows, std::size_t columns,
                  const std::vector<std::uint16_t>& halves) {
  write_npy(file, {.rows = rows, .columns = columns, .codes = {halves.begin(), halves.end()}});
}

/// The example's operands and result as files: to try --a, --b and --d with.
void write_files(const RunRecord& record, const Problem& problem) {
  write_halves(record.staging() / "a.npy", problem.rows, problem.depth, problem.a);
  write_halves(record.staging() / "b.npy", problem.depth, problem.columns, problem.b);
  write_npy(record.staging() / "d.npy", problem.d);
}

Problem problem_of(const Options& options) {
  if (options.inputs.any_file()) return read_problem(options.inputs);
  Problem problem = example_problem(static_cast<std::size_t>(options.example_depth), options.seed);
  if (options.inputs.by_cublas) problem.alpha = options.inputs.alpha;
  return problem;
}

/// D by cuBLAS, in every way.
void run_census(Run& run, const Options& options) {
  const Census census = census_on_device(problem_of(options), options.census, options.search, run);
  run.record().gpu(census.gpu);
  write_census(run.record(), census);
  draw_census_figure(run, census);
  write_census_verdict(run.record(), census);
  if (const std::string line = census_bug_line(census); !line.empty()) run.fail(line);
  if (!census.fault.empty()) run.fail("the device failed at " + census.fault);
}

/// D from a file, or the example's.
void run_explanation(Run& run, const Options& options) {
  const Problem problem = problem_of(options);
  const bool is_example = !options.inputs.any_file();
  if (is_example) write_files(run.record(), problem);
  Explanation explanation = explain(problem, options.search, run);
  Classification classification = classify(problem, explanation, options.search.most_slices, run);
  const std::optional<Mistake> mistake = mistake_of(problem, classification);
  const Findings found{problem, std::move(explanation), std::move(classification), mistake};
  write_tables(run.record(), found);
  write_summary(run.record(), found);
  draw_figures(run, found);
  if (is_example)
    run.record().verdict(
        "No files are given (--a, --b, --d), so this explains an example of its own: planted output by "
        "output as hopper_fp32 with k in 4 slices, reduced in FP32.");
  write_verdict(run.record(), found);
  if (const std::string line = bug_line(found); !line.empty()) run.fail(line);
}

void run(Run& run, const Options& options) {
  options.inputs.by_cublas ? run_census(run, options) : run_explanation(run, options);
}

}  // namespace
}  // namespace experiments::explain_gemm

int main(int argc, char** argv) {
  using namespace experiments;
  explain_gemm::Options options;
  explain_gemm::Inputs& inputs = options.inputs;
  return run(
      argc, argv,
      {.program =
           {.name = "explain_gemm",
            .question = "Which arithmetic made this matrix product? Finds the accumulator, steps, slices of "
                        "k, reduction and epilogue that reproduce every bit of D = alpha A B + beta C",
            .example = "explain_gemm --a a.npy --b b.npy --d d.npy --out results/explained",
            .summary_keys =
                {{"verdict",
                  "explained (by one hypothesis), ambiguous (by several, which these outputs do not tell "
                  "apart, nor orders like them that are not in the list), undetermined (by what chance "
                  "may have left), unexplained"},
                 {"classification",
                  "the worst there is of none, rounding_only, undecided, accumulator_overflow, real_bug"},
                 {"hypotheses, candidates", "how many were tried, and how many reproduce every bit of D"},
                 {"not_refuted", "further ones that reproduce their sample, beyond --most-verified"},
                 {"chance_survivors",
                  "how many hypotheses would reproduce D by chance; from 0.01 on it is undetermined"},
                 {"rival, rival.outputs, rival.unexplained",
                  "the nearest hypothesis that does not reproduce D, and how many of the outputs that it was "
                  "held against refute it"},
                 {"more_outputs", "so many times as many outputs would tell; none unless undetermined"},
                 {"best.accumulator, best.slicing, best.slices, best.slice_length, best.reduction, "
                  "best.order, best.epilogue",
                  "the hypothesis that explains the most outputs; none where none explains any"},
                 {"triples", "of A, B and D"},
                 {"outputs, unexplained", "of D, and those that it does not explain"},
                 {"real_bugs", "unexplained ones beyond the error bound of any order"},
                 {"undecided",
                  "beyond that of FP32 sums and within that of FP16 sums, without a hypothesis that explains "
                  "most outputs"},
                 {"rounding_error, chain_error",
                  "root mean square of |D - exact| over the unexplained outputs within their bounds; over "
                  "all unexplained ones if fp32_fma_chain made them"},
                 {"mistake", "what gives every wrong output: none, or one of " +
                                 std::string(explain_gemm::mistake_names)},
                 {"beyond_range", "not finite, as the exact value is beyond the range of D's format"},
                 {"from_operands", "not finite, as an element of A, B or C is not"},
                 {"overflowed", "infinite or NaN though the exact value is within the range"},
                 {"first_overflow_k",
                  "the smallest k at which an exact partial sum of them leaves FP16's range, or \"none\""},
                 {"first_real_bug.triple, first_real_bug.row, first_real_bug.column", "or \"none\""},
                 {"device, cublas, cublas_lt", "--cublas alone, as all below: the GPU and the versions"},
                 {"ways, refused, not_repeating",
                  "of asking for the product: all, without a result, with other bits the second time"},
                 {"algorithms_listed", "by cuBLASLt; of these `ways` has a part, see --most-algorithms"},
                 {"not_asked", "ways that --budget, or a failure of the device, left no time for"},
                 {"results, results.VERDICT, results.CLASSIFICATION",
                  "different D: all, and those that are explained, ambiguous, ..., real_bug; not_searched: "
                  "for lack of time"}},
            .details =
                "The files are NumPy's, float16 for A and B, float16 or float32 for C and D:\n"
                "  import numpy as np\n"
                "  np.save('a.npy', a.astype(np.float16))  # m x k\n"
                "  np.save('b.npy', b.astype(np.float16))  # k x n\n"
                "  np.save('d.npy', d)                     # m x n, as the kernel stored it\n"
                "A D of float32 whose numbers are all FP16's, though the sums are not, is taken as FP16.\n"
                "Several products of one kernel and shape are explained together: --a A1.npy,A2.npy --b "
                "B1.npy,B2.npy --d D1.npy,D2.npy.\n"
                "\n"
                "Rounding D to FP16 leaves about 1 of 1000 outputs that tells orders of FP32 sums apart, so "
                "that wrong ones may reproduce all of a small D. How many would by chance is estimated from "
                "the others: one that misses m of all outputs counts (2/3)^(m + 1), the chance that an order "
                "half as far off misses none, where all rates of misses are alike beforehand and outputs of "
                "other operands independent. An order that is nearer still to a listed one may pass for it. "
                "D in FP32 tells with far fewer outputs.\n"
                "\n"
                "Accumulators, in ascending k; in each the running sum is rounded after every step:\n"
                "  fp32_fma_chain, fp16_fma_chain  a fused multiply-add for each k, in FP32 or FP16\n"
                "  fp16_mul_add_chain              each product is rounded to FP16, then each sum\n"
                "  hopper/blackwell_fp32, ..._fp16 steps of these tensor cores, whose sums are FP32 or FP16\n"
                "  ..._step8, ..._step4            the same in steps of 8 or 4 products, fewer than usual\n"
                "Slices of k, whose sums are added afterwards:\n"
                "  k in 4 slices of 256            contiguous (split-K)\n"
                "  blocks of 32 k to 8 slices in turn  block 0 to slice 0, block 1 to slice 1, ... (warps)\n"
                "  k cut in two at 96              k = 0 to 95, and the rest (stream-K)\n"
                "How these sums are added, one after the other, from the last on (descending), or neighbours "
                "first (pairwise):\n"
                "  reduced by fp32                 in FP32\n"
                "  reduced by fp16                 each is rounded to FP16, and every sum of them; of two "
                "slices this stands for all that add halves\n"
                "  reduced by fp16_partials        each is rounded to FP16 as it is stored, then added in "
                "FP32\n"
                "  reduced by fp16_in_place        each is added to D, which is FP16, slice after slice\n"
                "Epilogues, of the reduced sum s; float arithmetic, fl is a rounding, half_... is all in "
                "FP16:\n"
                "  scale                           fl(alpha s)\n"
                "  mul_add                         fl(fl(alpha s) + fl(beta c))\n"
                "  fma_on_product, fma_on_c        fma(alpha, s, fl(beta c)), fma(beta, c, fl(alpha s))\n"
                "  round_product_first             s is rounded to D's format before mul_add\n"
                "  round_c_first                   beta c is rounded to D's format before it is added\n"
                "  start_from_c                    the first slice's sum starts at c\n"
                "Bounds are those of Higham (2002, chapter 3) for every order of sums in fp32, in fp32 with "
                "fp16_reduction, or with fp16_accumulators.\n"
                "\n"
                "With --cublas D is made on the current GPU by cuBLAS and cuBLASLt, whose libraries are "
                "looked for when it starts.\n"
                "NaNs explain each other whatever their payload; everything else is compared bit for bit. "
                "The exit code is 1 when an output is beyond the error bound of every order of summation, or "
                "a mistake is named; otherwise 0, whatever the verdict."},
       .options =
           [&](CommandLine& command_line) {
             command_line.add("--a", inputs.a, "A, m x k, .npy of float16", "FILES");
             command_line.add("--b", inputs.b, "B, k x n, .npy of float16", "FILES");
             command_line.add("--d", inputs.d, "D, m x n, .npy of float16 or float32", "FILES");
             command_line.add("--c", inputs.c, "C, m x n, .npy of float16 or float32", "FILES");
             command_line.add("--alpha", inputs.alpha, "factor of A B");
             command_line.add("--beta", inputs.beta, "factor of C; default: 1 with --c, 0 without");
             command_line.add_flag("--cublas", inputs.by_cublas,
                                   "explain what cuBLAS makes of A and B (of an example's without files) in "
                                   "every way, instead of a D from a file");
             command_line.add(
                 "--most-algorithms", options.census.most_algorithms,
                 "of cuBLASLt that are tried for each compute and output type, an even part of all",
                 {.minimum = 1, .maximum = 100000, .quick = 100});
             command_line.add(
                 "--budget", options.census.budget_s,
                 "seconds after which --cublas asks for nothing more and explains no further result",
                 {.minimum = 0});
             command_line.add("--most-slices", options.search.most_slices,
                              "k is cut into up to so many slices", {.minimum = 1, .maximum = 16});
             command_line.add("--most-verified", options.search.most_verified,
                              "hypotheses that no sample refutes are held against all of D up to this number",
                              {.minimum = 1, .maximum = 10000});
             command_line.add("--example-depth", options.example_depth,
                              "k of the example that is explained without files",
                              {.minimum = 16, .maximum = 65536, .quick = 256});
             command_line.add_seed(options.seed);
           },
       .body = [&](Run& r) { explain_gemm::run(r, options); }});
}
