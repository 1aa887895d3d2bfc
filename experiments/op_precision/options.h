#pragma once
/// The options of op_precision: what they are by default, and how the command line sets them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/frame/command_line.h"

namespace experiments::op_precision {

struct Options {
  /// The longest to run first, which shares them out best.
  std::vector<std::string> models{"transformer", "ssd", "lstm", "cnn", "autoencoder", "mlp"};
  int steps = 100;
  std::optional<int> batch;
  std::uint64_t seed = 0;
  std::string reductions = "fp32";
};

inline void bind(CommandLine& command_line, Options& options) {
  command_line.add_choices("--models", options.models, "models",
                           "whose operations are recorded; stand-ins need mlp, autoencoder, cnn "
                           "and transformer");
  command_line.add("--steps", options.steps,
                   "training steps; operands are recorded after a tenth of them and after all",
                   {.minimum = 1, .maximum = 1'000'000, .quick = 4});
  command_line.add("--batch", options.batch, "examples in a batch (default: the model's own)",
                   {.minimum = 2, .maximum = 8192, .quick = 4});
  command_line.add_seed(options.seed);
  command_line.add("--reductions", options.reductions,
                   "what the verdict's sums are formed in, fp32 (as CUDA kernels do) or fp16; both are "
                   "measured",
                   "fp32|fp16");
}

}  // namespace experiments::op_precision
