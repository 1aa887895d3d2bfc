#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/memory_anatomy/findings.h"

namespace experiments::memory_anatomy {
namespace {

/// Bytes of each role of a step's memory, and of all.
template <class Row>
std::vector<Column<Row>> role_columns(const sim::StepMemory& (*memory)(const Row&)) {
  std::vector<Column<Row>> columns;
  for (const sim::MemoryRoleOfStep& role : sim::step_roles()) {
    columns.push_back({std::string(role.name) + "_bytes", "bytes",
                       [memory, bytes = role.bytes](const Row& row) { return memory(row).*bytes; }});
  }
  columns.push_back({"total_bytes", "bytes", [memory](const Row& row) { return memory(row).total(); }});
  return columns;
}

struct RoleCost {
  const ParameterCost& cost;
  std::string_view role;
  std::uint64_t bytes;
};

const TableOf<RoleCost> parameters_table{
    .name = "parameters",
    .rows = "each role of a parameter's bytes under each policy and optimizer",
    .columns = {{"policy", "", [](auto& r) { return r.cost.policy; }},
                {"optimizer", "", [](auto& r) { return r.cost.optimizer; }},
                {"role", "", &RoleCost::role},
                {"bytes_per_parameter", "bytes", [](auto& r) { return r.cost.bytes(r.bytes); }}}};

const SummaryOf<ParameterCost> parameters_summary{
    {{"bytes_per_parameter.<policy>.<optimizer>", "of a linear map's weight in training",
      [](const ParameterCost& cost) { return cost.bytes(cost.memory.total()); }}}};

void write_parameters(RunRecord& record, const Findings& found) {
  const auto add = parameters_table.start(record);
  for (const ParameterCost& cost : found.costs) {
    for (const sim::MemoryRoleOfStep& role : parameter_roles())
      add({cost, role.name, cost.memory.*role.bytes});
    add({cost, "total", cost.memory.total()});
    add({cost, "inference", cost.memory.inference()});
    parameters_summary.write(record, cost, {cost.policy, cost.optimizer});
  }
}

TableOf<PolicyMemory> memory_table() {
  return {.name = "memory",
          .rows = "each policy",
          .columns = joined<Column<PolicyMemory>>(
              {{"policy", "", &PolicyMemory::policy}},
              role_columns<PolicyMemory>(
                  [](const PolicyMemory& m) -> const sim::StepMemory& { return m.memory; }))};
}

const SummaryOf<PolicyMemory> memory_summary{
    {{"memory_bytes.<policy>", "of a step of the network without recomputation, temporaries left out",
      [](auto& m) { return m.memory.total(); }}}};
const SummaryOf<Step> network_summary{
    {{"parameters", "of the network", [](const Step& step) { return step.network.parameter_count(); }}}};

void write_memory(RunRecord& record, const Step& step, const Findings& found) {
  memory_table().write(record, found.memories);
  for (const PolicyMemory& row : found.memories) memory_summary.write(record, row, {row.policy});
  network_summary.write(record, step);
}

/// What all operators of one description keep; or what is recomputed at one time, of which the total alone is known.
struct ActivationRow {
  sim::Recomputation recomputation;
  std::string_view name, operation;
  std::uint64_t repetitions;
  std::optional<sim::ActivationBytes> bytes;
  std::uint64_t total;

  Value if_known(std::uint64_t sim::ActivationBytes::*part) const {
    return bytes ? Value((*bytes).*part) : Value("");
  }
};

const TableOf<ActivationRow> activations_table{
    .name = "activations",
    .rows = "each operator of the description under each recomputation",
    .columns = {{"recomputation", "", [](auto& r) { return name_of(r.recomputation); }},
                {"operator", "", &ActivationRow::name},
                {"operation", "", &ActivationRow::operation},
                {"repetitions", "operators", &ActivationRow::repetitions},
                {"values_bytes", "bytes", [](auto& r) { return r.if_known(&sim::ActivationBytes::values); }},
                {"saved_bytes", "bytes", [](auto& r) { return r.if_known(&sim::ActivationBytes::saved); }},
                {"masks_bytes", "bytes", [](auto& r) { return r.if_known(&sim::ActivationBytes::masks); }},
                {"total_bytes", "bytes", &ActivationRow::total}}};

const SummaryOf<sim::Activations> activations_summary{
    {{"activation_bytes.<recomputation>", "of the step's policy", &sim::Activations::total}}};

void write_activations(RunRecord& record, const Step& step) {
  const auto add = activations_table.start(record);
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
    for (const auto& [description, sum] : sums)
      add({recomputation, sum.first->name, sum.first->operation->name, sum.repetitions, sum.bytes,
           sum.bytes.total()});
    if (recomputation != sim::Recomputation::none)
      add({recomputation, "recomputed at one time", "", 1, std::nullopt, activations.recomputed});
    activations_summary.write(record, activations, {name_of(recomputation)});
  }
}

struct OperatorRow {
  const OperatorCost& cost;
  double time_s;  ///< of all
};

const TableOf<OperatorRow> operators_table{
    .name = "operators",
    .rows = "each kernel of each operator of the description, forward and backward",
    .columns = {{"operator", "", [](auto& r) { return r.cost.name; }},
                {"kernel", "", [](auto& r) { return r.cost.kernel; }},
                {"phase", "", [](auto& r) { return name_of(r.cost.phase); }},
                {"class", "", [](auto& r) { return name_of(r.cost.operator_class); }},
                {"kernels", "kernels", [](auto& r) { return r.cost.kernels; }},
                {"flop", "FLOP", [](auto& r) { return r.cost.flop; }},
                {"bytes", "bytes", [](auto& r) { return r.cost.bytes; }},
                {"intensity_flop_per_byte", "FLOP/byte", [](auto& r) { return r.cost.intensity(); }},
                {"predicted_us", "us", [](auto& r) { return 1e6 * r.cost.time_s; }},
                {"time_share", "1", [](auto& r) { return r.cost.time_s / r.time_s; }},
                {"attainable_flop_per_s", "FLOP/s", [](auto& r) { return r.cost.flop_per_s(); }},
                {"bound_by", "", [](auto& r) { return r.cost.bound_by_memory ? "memory" : "arithmetic"; }}}};

const SummaryOf<Step> products_summary{
    {{"product_flop_forward", "multiplications and additions of contractions, forward",
      [](const Step& step) { return step.flop.forward; }},
     {"product_flop_backward", "multiplications and additions of contractions, backward",
      [](const Step& step) { return step.flop.backward; }}}};
const SummaryOf<ClassShare> classes_summary{
    {{"flop_share.<class>", "of tensor_contraction, statistical_normalisation and element_wise",
      &ClassShare::flop_share},
     {"time_share.<class>", "by the roofline", &ClassShare::time_share}}};
const SummaryOf<double> time_summary{{{"time_roofline_s", "of forward and backward, none of it overlapping",
                                       [](double time_s) { return time_s; }}}};

void write_operators(RunRecord& record, const Step& step) {
  const ClassShares shares = class_shares(step.typed, step.card);
  double time = 0;
  for (const ClassShare& share : shares) time += share.time_s;
  const auto add = operators_table.start(record);
  for (const OperatorCost& cost : operator_costs(step.typed, step.card)) add({cost, time});
  products_summary.write(record, step);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    std::string name(name_of(sim::operator_classes[i]));
    std::ranges::replace_if(
        name, [](char c) { return c == ' ' || c == '-'; }, '_');
    classes_summary.write(record, shares[i], {name});
  }
  time_summary.write(record, time);
}

TableOf<Fit> batches_table() {
  return {.name = "batches",
          .rows = "each policy and recomputation",
          .columns = joined<Column<Fit>>(
              {{"policy", "", &Fit::policy},
               {"recomputation", "", [](const Fit& fit) { return name_of(fit.recomputation); }},
               {"largest_batch", "examples", [](const Fit& fit) { return fit.found.batch; }}},
              role_columns<Fit>([](const Fit& fit) -> const sim::StepMemory& { return fit.found.memory; }))};
}

const SummaryOf<Fit> batches_summary{
    {{"largest_batch.<policy>.<recomputation>", "that fits on the card; 0: none does",
      [](const Fit& fit) { return fit.found.batch; }, "a network with a batch"}}};

const TableOf<PublishedRow> published_table{
    .name = "published",
    .rows = "each published figure",
    .columns = {{"name", "", &PublishedRow::key},
                {"quantity", "", &PublishedRow::quantity},
                {"published", "the quantity's", &PublishedRow::published},
                {"ours", "the quantity's", &PublishedRow::ours},
                {"ratio", "1", &PublishedRow::ratio},
                {"source", "", &PublishedRow::source},
                {"note", "", &PublishedRow::note}}};

const SummaryOf<PublishedRow> published_summary{
    {{"published.<name>", "ours over the published figure of that name in published.csv",
      &PublishedRow::ratio}}};

Value over_allocated(const Allocation& row, std::uint64_t bytes) {
  if (row.allocated_bytes == 0) return bytes == 0 ? Value("") : Value(HUGE_VAL);
  return static_cast<double>(bytes) / static_cast<double>(row.allocated_bytes);
}

const TableOf<Allocation> allocated_table{
    .name = "allocated",
    .rows = "each role of a training step of the simulator by model and policy",
    .columns = {{"model", "", &Allocation::model},
                {"policy", "", &Allocation::policy},
                {"role", "", [](auto& a) { return name_of(a.role); }},
                {"predicted_bytes", "bytes", &Allocation::predicted_bytes},
                {"allocated_bytes", "bytes", &Allocation::allocated_bytes},
                {"ratio", "1", [](auto& a) { return over_allocated(a, a.predicted_bytes); }},
                {"needed_bytes", "bytes", &Allocation::needed_bytes},
                {"needed_over_allocated", "1", [](auto& a) { return over_allocated(a, a.needed_bytes); }}}};

using Allocations = std::vector<Allocation>;
const SummaryOf<Allocations> allocated_summary{
    {{"allocated_peaks", "of the simulator's training steps, by model, policy and role", &Allocations::size},
     {"allocated_peaks_as_predicted", "how many of them are to the byte what the formulas give",
      [](const Allocations& rows) {
        return std::ranges::count_if(rows, [](auto& a) { return a.predicted_bytes == a.allocated_bytes; });
      }}}};

void write_comparisons(RunRecord& record, const Findings& found) {
  batches_table().write(record, found.fits);
  for (const Fit& fit : found.fits)
    batches_summary.write(record, fit, {fit.policy, name_of(fit.recomputation)});
  published_table.write(record, found.published);
  for (const PublishedRow& row : found.published) published_summary.write(record, row, {row.key});
  allocated_table.write(record, found.allocations);
  allocated_summary.write(record, found.allocations);
}

void write_settings(RunRecord& record, const Step& step) {
  for (const auto& [symbol, value] : step.network.symbols) record.setting("network." + symbol, value);
  record.setting("network.source", step.network.source);
  record.setting("card.memory_bytes", step.card.memory_bytes);
  record.setting("card.bytes_per_s", step.card.bytes_per_s);
  record.setting("card.vector_flop_per_s", step.card.vector_flop_per_s);
  record.setting("card.contraction_flop_per_s", step.card.contraction_flop_per_s(step.contractions()));
  record.setting("card.source", step.card.source);
}

std::uint64_t highest_total(const std::vector<PolicyMemory>& memories) {
  std::uint64_t highest = 0;
  for (const PolicyMemory& row : memories) highest = std::max(highest, row.memory.total());
  return highest;
}

}  // namespace

Outputs outputs() {
  return outputs_of(parameters_table, memory_table(), activations_table, operators_table, batches_table(),
                    published_table, allocated_table, network_summary, parameters_summary, memory_summary,
                    activations_summary, products_summary, classes_summary, time_summary, batches_summary,
                    published_summary, allocated_summary);
}

void report(Run& run, const Step& step, const Options& options, const Findings& found) {
  RunRecord& record = run.record();
  write_settings(record, step);
  write_parameters(record, found);
  write_memory(record, step, found);
  write_activations(record, step);
  write_operators(record, step);
  write_comparisons(record, found);
  draw_figures(run, {.network = fmt::format("{}, {}", step.setting, options.optimizer),
                     .policy = options.policy,
                     .card = step.card,
                     .contractions = step.contractions(),
                     .available_bytes = static_cast<double>(step.available_bytes),
                     .highest_bytes = static_cast<double>(highest_total(found.memories))});
  write_verdict(record, step, options, found);
}

}  // namespace experiments::memory_anatomy
