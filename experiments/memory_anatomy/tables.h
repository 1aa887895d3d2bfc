#pragma once
/// The tables and summary of memory_anatomy.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/command_line.h"
#include "experiments/frame/record.h"
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

/// Roles of StepMemory that grow with parameters.
std::span<const sim::MemoryRoleOfStep> parameter_roles();

/// "cast weights" of "cast_weights".
std::string spaced(std::string_view name);

std::vector<Program::SummaryKey> summary_keys();

void record_settings(RunRecord& record, const Step& step);
/// Under every policy and optimizer.
std::vector<ParameterCost> write_parameters(RunRecord& record);
/// The step under several policies, FP32 first.
std::vector<PolicyMemory> write_memory(RunRecord& record, const Step& step, const Options& options);
void write_activations(RunRecord& record, const Step& step);
void write_operators(RunRecord& record, const Step& step);
/// None of a network without a symbol `batch`.
std::vector<Fit> write_batches(RunRecord& record, const Step& step, const Options& options);
void write_published(RunRecord& record, const std::vector<PublishedRow>& rows);
void write_allocations(RunRecord& record, const std::vector<Allocation>& rows);

}  // namespace experiments::memory_anatomy
