#pragma once
/// The figures of memory_anatomy.

#include <string>

#include "experiments/frame/experiment.h"
#include "sim/precision/precision_policy.h"
#include "sim/sizing/cost_model.h"

namespace experiments::memory_anatomy {

/// What the captions say of a run.
struct FigureSetting {
  std::string network;  ///< with batch and optimizer
  std::string policy;
  sim::Card card;
  fp16::Format contractions;   ///< what most products multiply
  double available_bytes = 0;  ///< on the card, beside the device's own kernels
  double highest_bytes = 0;    ///< of the bars
};

/// Draws them from the tables `memory` and `operators`.
void draw_figures(Run& run, const FigureSetting& setting);

}  // namespace experiments::memory_anatomy
