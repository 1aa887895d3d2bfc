#include <cstddef>

#include "experiments/accumulation/findings.h"
#include "experiments/frame/parallel.h"

namespace experiments::accumulation {
namespace {

std::vector<Ones> measure_ones(const std::vector<Accumulator>& accumulators, Run& run) {
  std::vector<Ones> ones;
  for (const Accumulator& accumulator : accumulators) ones.push_back({accumulator, {}});
  for (const Accumulator& accumulator : directed_additions()) ones.push_back({accumulator, {}});
  Progress progress = run.progress("ones", ones.size());
  parallel_for_each(ones.size(), run.threads(), [&](std::size_t i) {
    ones[i].sum = sum_of_ones(ones[i].accumulator);
    progress.tick();
  });
  return ones;
}

}  // namespace

Findings measure(const Options& options, Run& run) {
  Findings found{.accumulators = accumulators(), .errors = {}, .ones = {}, .means = {}};
  found.errors = measure_errors(found.accumulators, options, run);
  found.ones = measure_ones(found.accumulators, run);
  found.means = measure_means(options.seed, options.vectors, run);
  return found;
}

}  // namespace experiments::accumulation
