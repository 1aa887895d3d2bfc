#pragma once
/// The whole of the experiment, for its program and for `halflab explain`.

#include <string>

#include "experiments/explain_gemm/options.h"
#include "experiments/frame/experiment.h"

namespace experiments::explain_gemm {

/// The experiment as a program of that name; the options must outlive it.
Experiment experiment(const std::string& name, Options& options);

}  // namespace experiments::explain_gemm
