#include "experiments/memory_anatomy/allocation.h"

#include <stdexcept>

#include "experiments/memory_anatomy/networks.h"
#include "experiments/training/training_setup.h"
#include "sim/precision/precision_policy.h"
#include "sim/sizing/memory_model.h"
#include "sim/sizing/tape_memory.h"

namespace experiments::memory_anatomy {
namespace {

struct Prediction {
  std::uint64_t tape = 0, needed = 0;
};

Prediction predicted(sim::MemoryRole role, const sim::TypedNetwork& network, const sim::StepMemory& step,
                     const sim::TapeMemory& tape) {
  switch (role) {
    case sim::MemoryRole::weights:
      return {step.weights, step.weights};
    case sim::MemoryRole::master_weights:
      return {step.master_weights, step.master_weights};
    case sim::MemoryRole::optimizer_state:
      return {step.optimizer_state, step.optimizer_state};
    case sim::MemoryRole::activations:
      return {tape.activations, sim::kept_for_backward(network)};
    case sim::MemoryRole::gradients:
      return {tape.gradients, step.gradients + step.unscaled_gradients};
    case sim::MemoryRole::buffers:
      return {step.buffers, step.buffers};
    case sim::MemoryRole::temporaries:
      return {};
  }
  return {};
}

}  // namespace

std::vector<Allocation> measure_allocations(const std::vector<std::string>& models,
                                            const std::vector<std::string>& policies, int threads) {
  std::vector<Allocation> rows;
  for (const std::string& model : models) {
    TrainingOptions options{.model = model};
    const TrainingSetup setup(options);
    const sim::Network network = find_network(model).network();
    for (const std::string& name : policies) {
      const sim::PrecisionPolicy policy = sim::make_precision_policy(name);
      sim::Trainer trainer = setup.trainer({.policy = name, .threads = threads});
      for (int step = 0; step < 2; ++step) trainer.step();
      const sim::TypedNetwork typed = sim::typed(network, policy);
      const sim::StepMemory memory = sim::step_memory(typed, names::parse_spec(options.optimizer));
      const sim::TapeMemory tape = sim::tape_memory(typed);
      for (const sim::MemoryRole role : sim::memory_roles) {
        if (role == sim::MemoryRole::temporaries) continue;
        const Prediction prediction = predicted(role, typed, memory, tape);
        rows.push_back({.model = model,
                        .policy = name,
                        .role = role,
                        .predicted_bytes = prediction.tape,
                        .allocated_bytes = trainer.memory().peak_bytes(role),
                        .needed_bytes = prediction.needed});
      }
    }
  }
  return rows;
}

}  // namespace experiments::memory_anatomy
