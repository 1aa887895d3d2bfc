#pragma once
/// What memory_anatomy says of its findings.

#include <vector>

#include "experiments/memory_anatomy/tables.h"

namespace experiments::memory_anatomy {

struct Findings {
  const std::vector<ParameterCost>& costs;
  const std::vector<PolicyMemory>& memories;
  const std::vector<Fit>& fits;
  const std::vector<PublishedRow>& published;
  const std::vector<Allocation>& allocations;
};

void write_verdict(RunRecord& record, const Step& step, const Options& options, const Findings& found);

}  // namespace experiments::memory_anatomy
