#include "experiments/memory_anatomy/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "sim/optimizers/registry.h"

namespace experiments::memory_anatomy {
namespace {

constexpr std::array memory_policies{"fp32", "O1", "O2", "O3", "amp", "bf16", "fp8", "fp16"};
constexpr std::array fitted_policies{"fp32", "O1", "O2", "O3"};

double as_double(std::uint64_t count) {
  return static_cast<double>(count);
}

std::string setting_of(const sim::Network& network) {
  std::string setting = network.name;
  for (const char* symbol : {"batch", "sequence"}) {
    if (const auto found = network.symbols.find(symbol); found != network.symbols.end())
      setting += fmt::format(", {} {}", symbol, found->second);
  }
  return setting;
}

std::uint64_t beside_context(const sim::Card& card, double context_mib) {
  const auto context = static_cast<std::uint64_t>(std::llround(context_mib * 0x1p20));
  if (context < card.memory_bytes) return card.memory_bytes - context;
  throw std::invalid_argument(
      fmt::format("--context-mib: {} leave nothing of the card's {} bytes; allowed: less", context_mib,
                  card.memory_bytes));
}

template <class Row>
std::vector<std::string> with_roles(std::vector<std::string> columns, const Row& roles) {
  for (const sim::MemoryRoleOfStep& role : roles) columns.push_back(std::string(role.name) + "_bytes");
  columns.emplace_back("total_bytes");
  return columns;
}

void add_roles(std::vector<Value>& cells, const sim::StepMemory& memory) {
  for (const sim::MemoryRoleOfStep& role : sim::step_roles()) cells.emplace_back(memory.*role.bytes);
  cells.emplace_back(memory.total());
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
      setting(setting_of(network)) {}

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

std::string spaced(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '_', ' ');
  return text;
}

std::vector<Program::SummaryKey> summary_keys() {
  return {{"parameters", "of the network"},
          {"memory_bytes.<policy>", "of a step of the network without recomputation, temporaries left out"},
          {"activation_bytes.<recomputation>", "of the step's policy"},
          {"product_flop_forward, product_flop_backward", "multiplications and additions of contractions"},
          {"flop_share.<class>, time_share.<class>",
           "of tensor_contraction, statistical_normalisation and element_wise; time by the roofline"},
          {"time_roofline_s", "of forward and backward, none of it overlapping"},
          {"largest_batch.<policy>.<recomputation>", "that fits on the card; 0: none does"},
          {"bytes_per_parameter.<policy>.<optimizer>", "of a linear map's weight in training"},
          {"published.<name>", "ours over the published figure of that name in published.csv"},
          {"allocated_peaks, allocated_peaks_as_predicted",
           "of the simulator's training steps, by model, policy and role"}};
}

void record_settings(RunRecord& record, const Step& step) {
  for (const auto& [symbol, value] : step.network.symbols) record.setting("network." + symbol, value);
  record.setting("network.source", step.network.source);
  record.setting("card.memory_bytes", step.card.memory_bytes);
  record.setting("card.bytes_per_s", step.card.bytes_per_s);
  record.setting("card.vector_flop_per_s", step.card.vector_flop_per_s);
  record.setting("card.contraction_flop_per_s", step.card.contraction_flop_per_s(step.contractions()));
  record.setting("card.source", step.card.source);
}

std::vector<ParameterCost> write_parameters(RunRecord& record) {
  Table& table = record.table("parameters", {"policy", "optimizer", "role", "bytes_per_parameter"});
  std::vector<ParameterCost> costs;
  for (const sim::PrecisionPolicy& policy : sim::precision_policies()) {
    for (const sim::OptimizerRow& optimizer : sim::optimizers()) {
      const ParameterCost& cost =
          costs.emplace_back(parameter_cost(std::string(policy.name), std::string(optimizer.name)));
      const auto row = [&](std::string_view role, std::uint64_t bytes) {
        table.row({policy.name, optimizer.name, role, cost.bytes(bytes)});
      };
      for (const sim::MemoryRoleOfStep& role : parameter_roles()) row(role.name, cost.memory.*role.bytes);
      row("total", cost.memory.total());
      row("inference", cost.memory.inference());
      record.summary(fmt::format("bytes_per_parameter.{}.{}", policy.name, optimizer.name),
                     cost.bytes(cost.memory.total()));
    }
  }
  return costs;
}

std::vector<PolicyMemory> write_memory(RunRecord& record, const Step& step, const Options& options) {
  const names::Spec optimizer = names::parse_spec(options.optimizer);
  Table& table = record.table("memory", with_roles({"policy"}, sim::step_roles()));
  std::vector<PolicyMemory> rows;
  for (const char* name : memory_policies) {
    const sim::StepMemory memory =
        sim::step_memory(sim::typed(step.network, sim::find_precision_policy(name)), optimizer);
    rows.push_back({name, memory});
    std::vector<Value> cells{name};
    add_roles(cells, memory);
    table.row(cells);
    record.summary(fmt::format("memory_bytes.{}", name), memory.total());
  }
  record.summary("parameters", step.network.parameter_count());
  return rows;
}

void write_activations(RunRecord& record, const Step& step) {
  Table& table = record.table("activations", {"recomputation", "operator", "operation", "repetitions",
                                              "values_bytes", "saved_bytes", "masks_bytes", "total_bytes"});
  for (const sim::Recomputation recomputation : sim::recomputations) {
    const sim::Activations activations = sim::activations(step.typed, recomputation);
    struct Sum {
      const sim::Network::Operator* first = nullptr;
      std::uint64_t repetitions = 0;
      sim::ActivationBytes bytes;
    };
    std::map<std::size_t, Sum> sums;  // by description
    for (std::size_t i = 0; i < step.network.operators.size(); ++i) {
      const sim::Network::Operator& op = step.network.operators[i];
      Sum& sum = sums[op.description];
      if (sum.first == nullptr) sum.first = &op;
      ++sum.repetitions;
      sum.bytes += activations.of_operators[i];
    }
    for (const auto& [description, sum] : sums) {
      table.row({name_of(recomputation), sum.first->name, sum.first->operation->name, sum.repetitions,
                 sum.bytes.values, sum.bytes.saved, sum.bytes.masks, sum.bytes.total()});
    }
    if (recomputation != sim::Recomputation::none)
      table.row(
          {name_of(recomputation), "recomputed at one time", "", 1, "", "", "", activations.recomputed});
    record.summary(fmt::format("activation_bytes.{}", name_of(recomputation)), activations.total());
  }
}

void write_operators(RunRecord& record, const Step& step) {
  const ClassShares shares = class_shares(step.typed, step.card);
  double time = 0;
  for (const ClassShare& share : shares) time += share.time_s;
  Table& table = record.table("operators", {"operator", "kernel", "phase", "class", "kernels", "flop",
                                            "bytes", "intensity_flop_per_byte", "predicted_us", "time_share",
                                            "attainable_flop_per_s", "bound_by"});
  for (const OperatorCost& cost : operator_costs(step.typed, step.card)) {
    table.row({cost.name, cost.kernel, name_of(cost.phase), name_of(cost.operator_class), cost.kernels,
               cost.flop, cost.bytes, cost.intensity(), 1e6 * cost.time_s, cost.time_s / time,
               cost.flop_per_s(), cost.bound_by_memory ? "memory" : "arithmetic"});
  }
  record.summary("product_flop_forward", step.flop.forward);
  record.summary("product_flop_backward", step.flop.backward);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    std::string name(name_of(sim::operator_classes[i]));
    std::ranges::replace_if(
        name, [](char c) { return c == ' ' || c == '-'; }, '_');
    record.summary("flop_share." + name, shares[i].flop_share);
    record.summary("time_share." + name, shares[i].time_share);
  }
  record.summary("time_roofline_s", time);
}

std::vector<Fit> write_batches(RunRecord& record, const Step& step, const Options& options) {
  Table& table =
      record.table("batches", with_roles({"policy", "recomputation", "largest_batch"}, sim::step_roles()));
  std::vector<Fit> fits;
  if (!step.choice.description.symbols.contains("batch")) return fits;
  for (const char* policy : fitted_policies) {
    for (const sim::Recomputation recomputation : sim::recomputations) {
      const Fit& fit = fits.emplace_back(
          Fit{.policy = policy,
              .recomputation = recomputation,
              .found = sim::largest_batch(step.choice.description, step.choice.symbols,
                                          {.policy = sim::find_precision_policy(policy),
                                           .optimizer = names::parse_spec(options.optimizer),
                                           .recomputation = recomputation,
                                           .bytes = step.available_bytes})});
      std::vector<Value> cells{policy, name_of(recomputation), fit.found.batch};
      add_roles(cells, fit.found.memory);
      table.row(cells);
      record.summary(fmt::format("largest_batch.{}.{}", policy, name_of(recomputation)), fit.found.batch);
    }
  }
  return fits;
}

void write_published(RunRecord& record, const std::vector<PublishedRow>& rows) {
  Table& table =
      record.table("published", {"name", "quantity", "published", "ours", "ratio", "source", "note"});
  for (const PublishedRow& row : rows) {
    table.row({row.key, row.quantity, row.published, row.ours, row.ratio(), row.source, row.note});
    record.summary("published." + row.key, row.ratio());
  }
}

void write_allocations(RunRecord& record, const std::vector<Allocation>& rows) {
  Table& table = record.table("allocated", {"model", "policy", "role", "predicted_bytes", "allocated_bytes",
                                            "ratio", "needed_bytes", "needed_over_allocated"});
  std::size_t as_predicted = 0;
  for (const Allocation& row : rows) {
    const auto over_allocated = [&](std::uint64_t bytes) -> Value {
      if (row.allocated_bytes == 0) return bytes == 0 ? Value("") : Value(HUGE_VAL);
      return as_double(bytes) / as_double(row.allocated_bytes);
    };
    table.row({row.model, row.policy, name_of(row.role), row.predicted_bytes, row.allocated_bytes,
               over_allocated(row.predicted_bytes), row.needed_bytes, over_allocated(row.needed_bytes)});
    as_predicted += row.predicted_bytes == row.allocated_bytes;
  }
  record.summary("allocated_peaks", rows.size());
  record.summary("allocated_peaks_as_predicted", as_predicted);
}

}  // namespace experiments::memory_anatomy
