#pragma once
/// `halflab selftest`: whether this build has the bits of the release.

#include "experiments/frame/experiment.h"

namespace halflab::selftest {

int run(int argc, const char* const* argv, experiments::Streams streams);

}  // namespace halflab::selftest
