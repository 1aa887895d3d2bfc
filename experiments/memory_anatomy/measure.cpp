#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <stdexcept>

#include "experiments/memory_anatomy/findings.h"
#include "sim/optimizers/registry.h"

namespace experiments::memory_anatomy {
namespace {

constexpr std::array memory_policies{"fp32", "O1", "O2", "O3", "amp", "bf16", "fp8", "fp16"};
constexpr std::array fitted_policies{"fp32", "O1", "O2", "O3"};

/// "BERT-large with layers 12, batch 4, sequence 512": other symbols than these where they were chosen.
std::string setting_of(const sim::Network& network, const std::map<std::string, std::uint64_t>& chosen) {
  std::string setting = network.name, joint = " with ";
  for (const auto& [symbol, value] : chosen) {
    if (symbol == "batch" || symbol == "sequence") continue;
    setting += fmt::format("{}{} {}", joint, symbol, value);
    joint = ", ";
  }
  for (const char* symbol : {"batch", "sequence"}) {
    if (const auto found = network.symbols.find(symbol); found != network.symbols.end())
      setting += fmt::format(", {} {}", symbol, found->second);
  }
  return setting;
}

std::uint64_t beside_context(const sim::Card& card, double context_mib) {
  const auto context = static_cast<std::uint64_t>(std::llround(context_mib * 0x1p20));
  if (context < card.memory_bytes) return card.memory_bytes - context;
  throw std::invalid_argument(fmt::format(
      "--context-mib: {} leave nothing of the card's {} bytes; allowed: less, or more by --memory-gib",
      context_mib, card.memory_bytes));
}

}  // namespace

Step::Step(const Options& options, const sim::PrecisionPolicy& given_policy)
    : choice(memory_anatomy::network_of(options)),
      network(from_option("--network", [&] { return choice.network(); })),
      policy(given_policy),
      typed(sim::typed(network, policy)),
      card(card_of(options, policy)),
      available_bytes(beside_context(card, options.context_mib)),
      flop(product_flop(typed)),
      setting(setting_of(network, choice.symbols)) {}

fp16::Format Step::contractions() const {
  std::map<int, std::uint64_t> flop_by_width;
  std::map<int, fp16::Format> format_by_width;
  for (const sim::Kernel& kernel : sim::kernels_of(typed)) {
    if (kernel.operator_class != sim::OperatorClass::tensor_contraction) continue;
    flop_by_width[kernel.operands.width()] += kernel.flop;
    format_by_width.insert_or_assign(kernel.operands.width(), kernel.operands);
  }
  const auto most = std::ranges::max_element(flop_by_width, {}, &std::pair<const int, std::uint64_t>::second);
  return most == flop_by_width.end() ? policy.lower_precision : format_by_width.at(most->first);
}

std::span<const sim::MemoryRoleOfStep> parameter_roles() {
  return sim::step_roles().first(sim::step_roles().size() - 2);  // all but buffers and activations
}

Findings measure(const Step& step, const Options& options, int threads) {
  Findings found;
  for (const sim::PrecisionPolicy& policy : sim::precision_policies()) {
    for (const sim::OptimizerRow& optimizer : sim::optimizers())
      found.costs.push_back(parameter_cost(std::string(policy.name), std::string(optimizer.name)));
  }
  const names::Spec optimizer = names::parse_spec(options.optimizer);
  for (const char* name : memory_policies)
    found.memories.push_back(
        {name, sim::step_memory(sim::typed(step.network, sim::find_precision_policy(name)), optimizer)});
  if (step.choice.description.symbols.contains("batch")) {
    std::vector<std::string> policies(fitted_policies.begin(), fitted_policies.end());
    if (std::ranges::find(policies, options.policy) == policies.end())
      policies.insert(policies.begin(), options.policy);
    for (const std::string& policy : policies) {
      for (const sim::Recomputation recomputation : sim::recomputations) {
        found.fits.push_back(
            {.policy = policy,
             .recomputation = recomputation,
             .found = sim::largest_batch(
                 step.choice.description, step.choice.symbols,
                 {.policy = policy == options.policy ? step.policy : sim::find_precision_policy(policy),
                  .optimizer = optimizer,
                  .recomputation = recomputation,
                  .bytes = step.available_bytes})});
      }
    }
  }
  found.published = published_rows();
  found.allocations = measure_allocations({"mlp", "cnn", "transformer"}, {"fp32", "O1", "O2", "O3"}, threads);
  return found;
}

}  // namespace experiments::memory_anatomy
