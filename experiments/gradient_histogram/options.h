#pragma once
/// The options of gradient_histogram: what they are by default, and how the command line sets them.

#include <string>

#include "experiments/frame/command_line.h"
#include "experiments/training/training_setup.h"

namespace experiments::gradient_histogram {

struct Options {
  TrainingOptions training{.model = "mlp", .steps = 600};
  std::string figure = "exponents";
  int pool = 4;     ///< batches from the last step on that are counted together
  int moments = 8;  ///< evenly spaced over training, from its first step to its last; each step once
};

inline void bind(CommandLine& command_line, Options& options) {
  command_line.add_presets(
      "--figure", options.figure,
      {{"exponents", "the model's gradients by exponent", {}},
       {"paper3",
        "activation gradients in the layout of figure 3 of Micikevicius et al. (2018), by default "
        "of",
        {{"--model", "ssd:normaliser=1"},
         {"--optimizer", "momentum:weight_decay=5.6e-6"},
         {"--lr", "1.2"},
         {"--batch", "32"},
         {"--steps", "250"}}},
       {"paper2b",
        "weight gradients over training, as in their figure 2b, by default of",
        {{"--model", "lstm:width=256"}, {"--steps", "160"}}}},
      "what to draw besides");
  options.training.bind(command_line, 30);
  command_line.add("--pool", options.pool, "batches whose gradients are counted together",
                   {.minimum = 1, .maximum = 1000, .quick = 2});
  command_line.add("--moments", options.moments,
                   "moments of training, evenly spaced, whose gradients are drawn as ridges",
                   {.minimum = 1, .maximum = 100, .quick = 3});
}

}  // namespace experiments::gradient_histogram
