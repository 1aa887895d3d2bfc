#pragma once

#include "experiments/explain_gemm/census.h"

namespace experiments::explain_gemm {

/// take_census() on the current CUDA device with the cuBLAS that is installed. Throws std::runtime_error, one
/// line, without either.
Census census_on_device(const Problem& problem, const CensusOptions& options, const SearchOptions& search,
                        const Run& run);

}  // namespace experiments::explain_gemm
