#pragma once
/// The options of explain_gemm: what they are by default, and how the command line sets them.

#include <cstdint>

#include "experiments/explain_gemm/census.h"
#include "experiments/explain_gemm/problem.h"
#include "experiments/explain_gemm/search.h"
#include "experiments/frame/command_line.h"

namespace experiments::explain_gemm {

inline constexpr int quick_algorithms = 100, quick_example_depth = 256;

struct Options {
  Inputs inputs;
  SearchOptions search;
  CensusOptions census;
  int example_depth = 1024;
  std::uint64_t seed = 1;
};

inline void bind(CommandLine& command_line, Options& options) {
  Inputs& inputs = options.inputs;
  command_line.add("--a", inputs.a,
                   "A, m x k, float16, bfloat16 or float32; .npy, or FILE:NAME of .npz or .safetensors",
                   "FILES");
  command_line.add("--b", inputs.b, "B, k x n, likewise", "FILES");
  command_line.add("--d", inputs.d, "D, m x n, likewise", "FILES");
  command_line.add("--c", inputs.c, "C, m x n, likewise", "FILES");
  command_line.add("--alpha", inputs.alpha, "factor of A B");
  command_line.add("--beta", inputs.beta, "factor of C; default: 1 with --c, 0 without");
  command_line.add("--tree", inputs.tree,
                   "one more order of the k products, as halflab reveal --to writes it", "FILE");
  command_line.add_flag("--cublas", inputs.by_cublas,
                        "explain what cuBLAS makes of A and B (of an example's without files) in "
                        "every way, instead of a D from a file");
  command_line.add("--most-algorithms", options.census.most_algorithms,
                   "of cuBLASLt that are tried for each compute and output type, an even part of all",
                   {.minimum = 1, .maximum = 100000, .quick = quick_algorithms});
  command_line.add("--budget", options.census.budget_s,
                   "seconds after which --cublas asks for nothing more and explains no further result",
                   {.minimum = 0});
  command_line.add("--most-slices", options.search.most_slices,
                   "k is cut into up to so many slices, and dealt to up to 64 lanes unless this is 1",
                   {.minimum = 1, .maximum = slices_at_most});
  command_line.add("--most-verified", options.search.most_verified,
                   "hypotheses that no sample refutes are held against all of D up to this number",
                   {.minimum = 1, .maximum = 10000});
  command_line.add("--example-depth", options.example_depth,
                   "k of the example that is explained without files",
                   {.minimum = 16, .maximum = 65536, .quick = quick_example_depth});
  command_line.add_seed(options.seed);
}

}  // namespace experiments::explain_gemm
