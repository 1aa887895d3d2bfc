#include "experiments/explain_gemm/tree_file.h"
#include "tests/fuzz/fuzz.h"

/// What is read can be added up, and reads back.
HALFLAB_FUZZ(input) {
  fuzz::allow_refusal([&] {
    const std::filesystem::path file = fuzz::as_file(input, "tree.json");
    const fp16::SummationTree tree = experiments::explain_gemm::read_tree(file);
    const std::vector<double> ones(tree.leaves, 1);
    const double sum = tree.evaluate<double>(ones, [](std::span<const double> terms) {
      double all = 0;
      for (const double term : terms) all += term;
      return all;
    });
    if (sum != static_cast<double>(tree.leaves)) throw "a term is lost";
    experiments::explain_gemm::write_tree(file, tree);
    if (!(experiments::explain_gemm::read_tree(file) == tree)) throw "its own text is not read back";
  });
}
