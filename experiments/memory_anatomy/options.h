#pragma once
/// The options of memory_anatomy: what they are by default, and how the command line sets them.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>

#include "experiments/frame/command_line.h"
#include "experiments/memory_anatomy/networks.h"
#include "experiments/training/options.h"
#include "fp16/names.h"
#include "sim/sizing/cost_model.h"

namespace experiments::memory_anatomy {

struct Options {
  std::string network = "bert_large";
  std::optional<int> batch;
  std::optional<int> sequence;
  std::string policy = "amp";
  std::string optimizer = "adamw";
  std::string card = "v100";
  std::optional<double> memory_gib;
  std::optional<double> peak_tflops;
  std::optional<double> bandwidth_gb_per_s;
  double context_mib = 1343;
};

inline void bind(CommandLine& command_line, Options& options) {
  command_line.add("--network", options.network,
                   fmt::format("one of {}, or a file; with its symbols, as bert_large:layers=12",
                               fmt::join(shipped_networks(), ", ")),
                   "NAME|FILE.toml");
  command_line.add("--batch", options.batch, "the network's symbol of this name", {.minimum = 1});
  command_line.add("--sequence", options.sequence, "the network's symbol of this name", {.minimum = 1});
  add_policy(command_line, options.policy);
  command_line.add_choice("--optimizer", options.optimizer, "optimizers", "whose state is counted");
  command_line.add("--card", options.card,
                   fmt::format("one of {}", fmt::join(names::names_of(sim::cards()), ", ")), "NAME");
  command_line.add("--memory-gib", options.memory_gib, "memory in place of the card's",
                   {.minimum = 0, .maximum = 1 << 20, .minimum_excluded = true});
  command_line.add("--peak-tflops", options.peak_tflops,
                   "rate of contractions in the policy's lower precision, in place of the card's",
                   {.minimum = 0, .maximum = 1e9, .minimum_excluded = true});
  command_line.add("--bandwidth-gb-per-s", options.bandwidth_gb_per_s, "in place of the card's",
                   {.minimum = 0, .maximum = 1e9, .minimum_excluded = true});
  command_line.add("--context-mib", options.context_mib,
                   "what the device's own kernels take before any tensor",
                   {.minimum = 0, .maximum = 1 << 20});
}

}  // namespace experiments::memory_anatomy
