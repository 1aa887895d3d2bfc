#include "experiments/training/options.h"

namespace experiments {

void add_data(CommandLine& command_line, std::string& data) {
  command_line.add_choice_or_path("--data", data, "data",
                                  "a directory of IDX files, named as MNIST's, .gz or not; or a text file");
}

void add_model(CommandLine& command_line, std::string& model) {
  command_line.add_choice("--model", model, "models", "network to train, with options as mlp:hidden1=64");
}

void add_policy(CommandLine& command_line, std::string& policy) {
  command_line.add_choice("--policy", policy, "policies",
                          "precision policy, with overrides as O2:keep_batchnorm_fp32=false");
}

void add_scalers(CommandLine& command_line, std::vector<std::string>& scalers) {
  command_line.add_choices(
      "--scalers", scalers, "scalers",
      "loss scalers to compare, with options as dynamic:growth_interval=20:init_scale=256");
}

void add_optimizer(CommandLine& command_line, std::string& optimizer) {
  command_line.add_choice("--optimizer", optimizer, "optimizers",
                          "optimizer, with options as adamw:weight_decay=0.1 (default: the model's own)");
}

void add_schedule(CommandLine& command_line, std::string& schedule) {
  command_line.add_choice("--schedule", schedule, "schedules",
                          "learning rate over the run, as cosine:warmup_steps=50 (default: the model's own)");
}

void add_batch(CommandLine& command_line, std::optional<int>& batch) {
  command_line.add("--batch", batch, "examples in a batch (default: the model's own)",
                   {.minimum = 1, .maximum = 65536});
}

void add_learning_rate(CommandLine& command_line, std::optional<double>& learning_rate) {
  command_line.add(
      "--lr", learning_rate,
      "learning rate (default: the model's own, or its default for an optimizer of another kind)",
      {.minimum = 0, .maximum = 1000, .minimum_excluded = true, .in_binary32 = true});
}

void add_twin_every(CommandLine& command_line, int& twin_every, std::optional<int> quick) {
  command_line.add("--twin-every", twin_every, "steps from one comparison with the FP32 twin to the next",
                   {.minimum = 1, .maximum = 1'000'000, .quick = quick});
}

}  // namespace experiments
