/// Which operations need FP32?
///
/// Trains every built-in model in FP32 and records what its operations are given, early and late: operands,
/// and the gradient that comes back to the output. Each operation is then run by itself in FP16 and in FP64 on
/// these operands. One criterion for all decides which of them need FP32, and the lists that follow stand
/// beside those of PyTorch's autocast and Apex O1. Operations that no model has get operands made of what was
/// recorded for others.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "experiments/op_precision/lists.h"
#include "experiments/training/laboratory.h"

namespace experiments::op_precision {
namespace {

std::string setting_of(const Options& options, const Findings& findings) {
  return fmt::format(
      "Models {}, trained in FP32{}, operands recorded after {} and {} steps, seed {}. In FP16: operands, "
      "results and gradients, each rounded once; what happens to single elements, sums of products and sums "
      "of losses are in FP32, other sums in {}, or in FP16 where it is said. Incoming gradients are scaled "
      "by "
      "the largest power of two that leaves all gradients of the operation below 2^15, as a loss scaler of "
      "its "
      "own would: an operation does not answer for where the gradients of its model lie.",
      fmt::join(options.models, ", "), options.batch ? fmt::format(" on batches of {}", *options.batch) : "",
      early_step(options), options.steps, options.seed,
      findings.reductions == Reductions::fp32 ? "FP32" : "FP16");
}

void run(Run& run, const Options& options) {
  const Findings findings = measure(options, run);
  report(run, findings, setting_of(options, findings));
}

}  // namespace
}  // namespace experiments::op_precision

int main(int argc, char** argv) {
  using namespace experiments;
  op_precision::Options options;
  return run(
      argc, argv,
      {.program = {.name = "op_precision",
                   .question = "Which operations need FP32, by one criterion for all of them?",
                   .example = "op_precision --models transformer,lstm --steps 300 --out results/operations",
                   .outputs = op_precision::outputs(),
                   .details = op_precision::criterion_sentence()},
       .options = [&](CommandLine& command_line) { op_precision::bind(command_line, options); },
       .body = [&](Run& r) { op_precision::run(r, options); }});
}
