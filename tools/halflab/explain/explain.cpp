#include "tools/halflab/explain/explain.h"

#include "experiments/explain_gemm/explain.h"
#include "tools/halflab/command.h"

namespace halflab::explain {

int run(int argc, const char* const* argv, experiments::Streams streams) {
  experiments::explain_gemm::Options options;
  return run_command(argc, argv, experiments::explain_gemm::experiment("halflab explain", options), streams);
}

}  // namespace halflab::explain
