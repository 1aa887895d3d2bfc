#pragma once
/// `halflab inputs` and `halflab validate`: whether somebody's kernel computes the bits it should.

#include "experiments/frame/experiment.h"

namespace halflab::validate {

/// Writes operands for a kernel.
int run_inputs(int argc, const char* const* argv, experiments::Streams streams);

/// Compares its results with the exact ones rounded once.
int run(int argc, const char* const* argv, experiments::Streams streams);

}  // namespace halflab::validate
