#include "experiments/memory_anatomy/anatomy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "experiments/frame/command_line.h"

namespace experiments::memory_anatomy {
namespace {

constexpr std::uint64_t probe_features = 1024;

/// A linear map of so many inputs and outputs, without bias.
sim::NetworkDescription one_linear_map() {
  const std::string features = std::to_string(probe_features);
  return {.file = "one linear map",
          .name = "one linear map",
          .source = {},
          .symbols = {},
          .input_shape = {{"1", 0}, {features, 0}},
          .blocks = {{.name = "map",
                      .repeat = {"1", 0},
                      .operators = {{.name = "linear",
                                     .operation = "linear",
                                     .sizes = {{"features", {features, 0}}, {"bias", {"0", 0}}}}}}}};
}

bool is_same(const OperatorCost& cost, const sim::Kernel& kernel, const std::string& name) {
  return cost.name == name && cost.kernel == kernel.name && cost.phase == kernel.phase;
}

}  // namespace

NetworkChoice network_of(const Options& options) {
  NetworkChoice choice = from_option("--network", [&] { return find_network(options.network); });
  const auto set = [&](const std::string& symbol, const std::optional<int>& value) {
    if (value) choice.symbols[symbol] = static_cast<std::uint64_t>(*value);
  };
  set("batch", options.batch);
  set("sequence", options.sequence);
  return choice;
}

sim::Card card_of(const Options& options, const sim::PrecisionPolicy& policy) {
  sim::Card card = from_option("--card", [&] { return sim::find_card(options.card); });
  if (options.memory_gib)
    card.memory_bytes = static_cast<std::uint64_t>(std::llround(*options.memory_gib * 0x1p30));
  if (options.bandwidth_gb_per_s) card.bytes_per_s = *options.bandwidth_gb_per_s * 1e9;
  if (options.peak_tflops) {
    const fp16::Format multiplied =
        policy.operands.narrows() ? sim::narrowed_products : policy.lower_precision;
    std::ranges::find(card.contractions, multiplied, &sim::ContractionPeak::operands)->flop_per_s =
        *options.peak_tflops * 1e12;
  }
  return card;
}

std::string card_text(const Options& options) {
  std::string text(sim::find_card(options.card).description);
  const auto add = [&](const std::optional<double>& value, std::string_view unit) {
    if (value) text += fmt::format(", {:.4g} {} instead", *value, unit);
  };
  add(options.memory_gib, "GiB");
  add(options.bandwidth_gb_per_s, "GB/s");
  add(options.peak_tflops, "TFLOP/s");
  return text;
}

ParameterCost parameter_cost(const std::string& policy_spec, const std::string& optimizer) {
  const sim::PrecisionPolicy policy = sim::make_precision_policy(policy_spec);
  const sim::Network network = sim::network_of(one_linear_map());
  sim::StepMemory memory = sim::step_memory(sim::typed(network, policy), names::parse_spec(optimizer));
  memory.activations = 0;
  return {.policy = policy_spec,
          .optimizer = optimizer,
          .memory = memory,
          .weights = probe_features * probe_features};
}

std::vector<OperatorCost> operator_costs(const sim::TypedNetwork& network, const sim::Card& card) {
  std::vector<OperatorCost> costs;
  for (const sim::Kernel& kernel : sim::kernels_of(network)) {
    const std::string& name = network.network->operators[kernel.op].name;
    auto cost = std::ranges::find_if(costs, [&](const OperatorCost& c) { return is_same(c, kernel, name); });
    if (cost == costs.end()) {
      costs.push_back({.name = name,
                       .kernel = kernel.name,
                       .phase = kernel.phase,
                       .operator_class = kernel.operator_class,
                       .bound_by_memory = card.is_bound_by_memory(kernel)});
      cost = costs.end() - 1;
    }
    ++cost->kernels;
    cost->flop += kernel.flop;
    cost->bytes += kernel.bytes;
    cost->time_s += card.time_s(kernel);
  }
  return costs;
}

ClassShares class_shares(const sim::TypedNetwork& network, const sim::Card& card, bool repeated_blocks_only) {
  ClassShares shares;
  ClassShare all;
  for (const sim::Kernel& kernel : sim::kernels_of(network)) {
    if (repeated_blocks_only && !network.network->operators[kernel.op].in_checkpoint) continue;
    for (ClassShare* sum : {&shares[static_cast<std::size_t>(kernel.operator_class)], &all}) {
      sum->flop += kernel.flop;
      sum->bytes += kernel.bytes;
      sum->time_s += card.time_s(kernel);
    }
  }
  for (ClassShare& share : shares) {
    share.flop_share = static_cast<double>(share.flop) / static_cast<double>(all.flop);
    share.bytes_share = static_cast<double>(share.bytes) / static_cast<double>(all.bytes);
    share.time_share = share.time_s / all.time_s;
  }
  return shares;
}

ProductFlop product_flop(const sim::TypedNetwork& network) {
  ProductFlop sum;
  for (const sim::Kernel& kernel : sim::kernels_of(network)) {
    if (kernel.operator_class != sim::OperatorClass::tensor_contraction) continue;
    (kernel.phase == sim::Phase::forward ? sum.forward : sum.backward) += kernel.flop;
  }
  return sum;
}

}  // namespace experiments::memory_anatomy
