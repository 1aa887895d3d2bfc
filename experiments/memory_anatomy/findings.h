#pragma once
/// What there is to report of a training step.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/memory_anatomy/allocation.h"
#include "experiments/memory_anatomy/anatomy.h"
#include "experiments/memory_anatomy/published.h"

namespace experiments::memory_anatomy {

/// The step that a run looks at. It is not moved: its parts refer to each other.
struct Step {
  Step(const Options& options, const sim::PrecisionPolicy& policy);
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  NetworkChoice choice;
  sim::Network network;
  sim::PrecisionPolicy policy;
  sim::TypedNetwork typed;
  sim::Card card;
  std::uint64_t available_bytes;  ///< the card's, less the device's own kernels
  ProductFlop flop;
  std::string setting;  ///< "BERT-large, batch 4, sequence 512"

  /// What most of its products multiply.
  fp16::Format contractions() const;
};

/// The largest batch under one policy and recomputation.
struct Fit {
  std::string policy;
  sim::Recomputation recomputation;
  sim::LargestBatch found;
};

/// The bytes of one step under a policy.
struct PolicyMemory {
  std::string policy;
  sim::StepMemory memory;
};

struct Findings {
  std::vector<ParameterCost> costs;    ///< under every policy and optimizer
  std::vector<PolicyMemory> memories;  ///< of the step under several policies, FP32 first
  std::vector<Fit> fits;               ///< none of a network without a symbol `batch`
  std::vector<PublishedRow> published;
  std::vector<Allocation> allocations;
};
Findings measure(const Step& step, const Options& options, int threads);

/// Roles of StepMemory that grow with parameters.
std::span<const sim::MemoryRoleOfStep> parameter_roles();

/// For --help.
Outputs outputs();

/// Writes settings, tables, summary, figures and verdict.
void report(Run& run, const Step& step, const Options& options, const Findings& found);
void write_verdict(RunRecord& record, const Step& step, const Options& options, const Findings& found);

/// What the captions say of a run.
struct FigureSetting {
  std::string network;  ///< with batch and optimizer
  std::string policy;
  sim::Card card;
  fp16::Format contractions;   ///< what most products multiply
  double available_bytes = 0;  ///< on the card, beside the device's own kernels
  double highest_bytes = 0;    ///< of the bars
};

/// Draws the figures from the tables `memory` and `operators`.
void draw_figures(Run& run, const FigureSetting& setting);

}  // namespace experiments::memory_anatomy
