#include "experiments/explain_gemm/explain.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/explain_gemm/census.h"
#include "experiments/explain_gemm/findings.h"
#include "experiments/explain_gemm/matrix.h"
#include "experiments/explain_gemm/problem.h"

namespace experiments::explain_gemm {
namespace {

void write_halves(const std::filesystem::path& file, std::size_t rows, std::size_t columns,
                  const std::vector<float>& values) {
  const std::vector<std::uint16_t> halves = halves_of(values);
  write_matrix(file, {.rows = rows, .columns = columns, .codes = {halves.begin(), halves.end()}});
}

/// The example's operands and result as files: to try --a, --b and --d with.
void write_files(const RunRecord& record, const Problem& problem) {
  write_halves(record.staging() / "a.npy", problem.rows, problem.depth, problem.a);
  write_halves(record.staging() / "b.npy", problem.depth, problem.columns, problem.b);
  write_matrix(record.staging() / "d.npy", problem.d);
}

/// Options that nothing would come of.
void require_heeded(const Options& options) {
  const Inputs& inputs = options.inputs;
  const auto refuse = [](const char* option, const char* reason) {
    throw UsageError(fmt::format("{}: {}", option, reason));
  };
  if (!inputs.any_file()) {
    constexpr const char* needs_files = "is of matrices from files, and none are given (--a, --b, --d)";
    if (inputs.alpha != 1 && !inputs.by_cublas) refuse("--alpha", needs_files);
    if (inputs.beta) refuse("--beta", needs_files);
    if (!inputs.tree.empty()) refuse("--tree", needs_files);
  } else {
    constexpr const char* is_of_example = "is of the example, which is explained without files";
    const int depth = options.example_depth;
    if (depth != Options{}.example_depth && depth != quick_example_depth)
      refuse("--example-depth", is_of_example);
    if (options.seed != Options{}.seed) refuse("--seed", is_of_example);
  }
  if (inputs.by_cublas) return;
  constexpr const char* needs_cublas = "goes with --cublas";
  const int most = options.census.most_algorithms;
  if (options.census.budget_s) refuse("--budget", needs_cublas);
  if (most != CensusOptions{}.most_algorithms && most != quick_algorithms)
    refuse("--most-algorithms", needs_cublas);
}

Problem problem_of(const Options& options) {
  if (options.inputs.any_file()) return read_problem(options.inputs);
  const auto depth = static_cast<std::size_t>(options.example_depth);
  if (!options.inputs.by_cublas) return example_problem(depth, options.seed);
  // The example has as many outputs as it takes, in FP16, to tell one order of FP32 sums from all others.
  Problem problem = example_operands(768, depth, 512, options.seed);
  problem.alpha = options.inputs.alpha;
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
  if (is_example && run.record().is_kept()) write_files(run.record(), problem);
  Explanation explanation = explain(problem, options.search, run);
  Classification classification = classify(problem, explanation, options.search.most_slices, run);
  const std::optional<Mistake> mistake = mistake_of(problem, classification);
  const Findings found{problem, std::move(explanation), std::move(classification), mistake};
  write_results(run.record(), found);
  draw_figures(run, found);
  write_verdict(run.record(), found);
  if (is_example)
    run.record().verdict(
        "No files are given (--a, --b, --d), so this explains an example of its own: planted output by "
        "output as hopper_fp32 with k in 4 slices, reduced in FP32.");
  if (const std::string line = bug_line(found); !line.empty()) run.fail(line);
}

constexpr const char* details =
    R"(The files are .npy, or FILE:NAME of .npz and .safetensors; float16, bfloat16 or float32:
  import numpy as np
  np.save('a.npy', a.astype(np.float16))  # m x k
  np.save('b.npy', b.astype(np.float16))  # k x n
  np.save('d.npy', d)                     # m x n, as the kernel stored it
Numbers of float32 that are all bfloat16's, or all FP16's, are taken as such; of D only where the
sums are not. For A and B in FP32 and bfloat16 no tensor cores are tried, and slices of bfloat16
products are reduced by fp32, bfloat16, bfloat16_partials or bfloat16_in_place.
Several products of one kernel and shape are explained together: --a A1.npy,A2.npy --b B1.npy,B2.npy
--d D1.npy,D2.npy.

A small D in FP16 tells little: about 1 of 1000 of its outputs differs between two orders of FP32
sums, so that a wrong order may reproduce all of them. D in FP32 tells with far fewer outputs. How
many hypotheses would fit by chance is estimated from those that do not fit: one that misses m of
all outputs counts (2/3)^(m + 1), the chance that an order half as far off misses none. This takes
all rates of misses as equally likely beforehand, and outputs of other operands as independent. An
order that is nearer still to a listed one may pass for it.

The names in the answer are explained by --help-outputs.
With --cublas D is made on the current GPU by cuBLAS and cuBLASLt, whose libraries are looked for
when it starts.
NaNs explain each other whatever their payload; everything else is compared bit for bit. The exit
code is 1 when an output is beyond the error bound of every order of summation, or a mistake is
named; otherwise 0, whatever the verdict.)";

void run(Run& run, const Options& options) {
  require_heeded(options);
  options.inputs.by_cublas ? run_census(run, options) : run_explanation(run, options);
}

}  // namespace

Experiment experiment(const std::string& name, Options& options) {
  return {
      .program = {.name = name,
                  .question =
                      "Which arithmetic made this matrix product? Finds the accumulator, steps, slices of "
                      "k, reduction and epilogue that reproduce every bit of D = alpha A B + beta C",
                  .example = name + " --a a.npy --b b.npy --d d.npy --out results/explained",
                  .outputs = outputs_of(outputs(), census_outputs()),
                  .details = details},
      .options = [&](CommandLine& command_line) { bind(command_line, options); },
      .body = [&](Run& r) { run(r, options); }};
}

}  // namespace experiments::explain_gemm
