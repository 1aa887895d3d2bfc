#pragma once
/// `halflab quantize`: tensors as codes of a format, in files that others read, and what that loses.

#include "experiments/frame/experiment.h"

namespace halflab::quantize {

int run(int argc, const char* const* argv, experiments::Streams streams);

}  // namespace halflab::quantize
