#include "experiments/opt_levels/record.h"

#include <fmt/format.h>

#include <limits>
#include <string>
#include <utility>

#include "fp16/formats.h"
#include "sim/tensor/memory_account.h"

namespace experiments::opt_levels {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

/// Columns and cells of a table, side by side.
using Row = std::vector<std::pair<std::string, Value>>;

void add_interval(Row& row, const std::string& column, const Estimate& value) {
  row.emplace_back(column, value.mean);
  row.emplace_back(column + "_lower", value.lower());
  row.emplace_back(column + "_upper", value.upper());
}

void write(RunRecord& record, std::string_view name, const std::vector<Row>& rows) {
  std::vector<std::string> columns;
  for (const auto& [column, cell] : rows.front()) columns.push_back(column);
  Table& table = record.table(name, columns);
  for (const Row& row : rows) {
    std::vector<Value> cells;
    for (const auto& [column, cell] : row) cells.push_back(cell);
    table.row(cells);
  }
}

/// Accuracy and loss of a group, and how far they are from those of the reference's.
void add_quality(Row& row, const Findings& found, const SeedGroup& group) {
  for (const std::string key : {"final_accuracy", "final_loss"}) {
    if (key == "final_accuracy" && !found.is_classifier()) continue;
    add_interval(row, key, group.estimate(key));
    add_interval(row, key + "_difference",
                 estimate_difference(found.at_default(0).values(key), group.values(key)));
  }
}

Row policy_row(const Findings& found, std::size_t recipe) {
  const SeedGroup& group = found.at_default(recipe);
  Row row{{"recipe", group.policy}, {"scaler", group.scaler}, {"rank", recipe}};
  add_quality(row, found, group);
  row.emplace_back("diverged_runs", group.diverged_runs());
  row.emplace_back("aborted_runs", group.aborted_runs());
  for (const char* key : {"skipped_steps", "fraction_swallowed", "mean_fraction_flushed",
                          "mean_norm_share_flushed", "mean_relative_error"})
    row.emplace_back(key, group.estimate(key).mean);
  row.emplace_back("held_bytes", group.estimate("held_bytes").mean);
  for (const sim::MemoryRole role : sim::memory_roles) {
    row.emplace_back(fmt::format("{}_bytes", sim::name_of(role)),
                     group.estimate(fmt::format("peak_tensor_bytes_{}", sim::name_of(role))).mean);
  }
  row.emplace_back("reference_held_bytes", found.at_default(0).estimate("held_bytes").mean);
  return row;
}

Row batch_row(const Findings& found, std::size_t recipe) {
  const EqualBytes& equal = found.equal_bytes[recipe];
  const RunGroup& group = found.groups[equal.runs];
  const bool fits = equal.batch.batch > 0;
  const auto if_fits = [&](double value) { return fits ? value : undefined; };
  Row row{{"recipe", found.recipes[recipe].name},
          {"rank", recipe},
          {"budget_bytes", found.budget_bytes},
          {"batch", equal.batch.batch},
          {"held_bytes", equal.batch.bytes},
          {"steps", if_fits(group.budget.steps)},
          {"learning_rate", if_fits(group.budget.learning_rate)}};
  const Estimate nothing{.mean = undefined, .deviation = undefined, .half_width = undefined};
  const std::string key(found.quality());
  add_interval(row, key, fits ? group.group.estimate(key) : nothing);
  add_interval(row, key + "_difference", fits ? found.difference(group.group, found.at_default(0)) : nothing);
  add_interval(row, key + "_difference_at_this_batch",
               fits ? found.difference(group.group, found.groups[equal.reference].group) : nothing);
  return row;
}

void write_operations(RunRecord& record, const Findings& found) {
  Table& table = record.table("operations", {"recipe", "operation", "format", "operands", "operand_bits",
                                             "gradient_format", "calls", "values", "values_bytes"});
  for (std::size_t i = 0; i < found.recipes.size(); ++i) {
    for (const OperationUse& use : found.operations[i])
      table.row({found.recipes[i].name, use.operation, fp16::name_of(use.format), use.operands,
                 use.operand_bits, use.gradient_format, use.calls, use.values, use.bytes});
  }
}

void write_runs(RunRecord& record, const Findings& found) {
  std::vector<Row> rows;
  for (const RunGroup& group : found.groups) {
    for (std::size_t i = 0; i < group.runs.size(); ++i) {
      const CellResult& result = group.group.results[i];
      Row row{{"recipe", group.group.policy},
              {"scaler", group.group.scaler},
              {"seed", group.runs[i].seed},
              {"batch", group.budget.batch},
              {"learning_rate", group.budget.learning_rate}};
      for (const auto& [key, value] : result.values) row.emplace_back(key, value);
      row.emplace_back("abort_reason", result.abort_reason);
      rows.push_back(std::move(row));
    }
  }
  write(record, "runs", rows);
}

void write_rows(RunRecord& record, std::string_view name, const Findings& found,
                Row (*row_of)(const Findings&, std::size_t)) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < found.recipes.size(); ++i) rows.push_back(row_of(found, i));
  write(record, name, rows);
}

}  // namespace

void write_settings(RunRecord& record, const Findings& found) {
  for (const Recipe& recipe : found.recipes) {
    for (const auto& [role, value] : sim::roles_of(recipe.policy))
      record.setting(fmt::format("recipe.{}.{}", recipe.name, role), value);
    record_settings(record, "scaler", recipe.name, sim::options_of(recipe.make_scaler()));
  }
  const auto optimizer = found.setup.trainer({}).optimizer().options();
  record_settings(record, "optimizer", names::name_in(found.options.training.optimizer), optimizer);
}

void write_tables(RunRecord& record, const Findings& found) {
  write_rows(record, "policies", found, policy_row);
  write_rows(record, "batches", found, batch_row);
  write_operations(record, found);
  write_runs(record, found);
  const std::vector<InstrumentedRun> runs =
      instrumented(found, std::span(found.groups).first(found.recipes.size()));
  write_steps(record, runs);
  write_skips(record, runs);
}

void write_summary(RunRecord& record, const Findings& found) {
  record.summary("budget_bytes", found.budget_bytes);
  for (std::size_t i = 0; i < found.recipes.size(); ++i) {
    const std::string& name = found.recipes[i].name;
    const SeedGroup& group = found.at_default(i);
    for (const auto& [key, value] : group.results.front().values) {
      if (key != "first_nonfinite_step")
        write_estimate(record, fmt::format("{}.{}", name, key), group.estimate(key));
    }
    record.summary(name + ".first_nonfinite_step", earliest_nonfinite_step(group));
    record.summary(name + ".diverged_runs", group.diverged_runs());
    record.summary(name + ".aborted_runs", group.aborted_runs());
    const std::string quality(found.quality());
    if (i > 0) {
      write_estimate(record, fmt::format("{}.{}_difference", name, quality),
                     found.difference(group, found.at_default(0)));
    }
    const EqualBytes& equal = found.equal_bytes[i];
    record.summary(name + ".equal_bytes_batch", equal.batch.batch);
    if (i == 0 || equal.batch.batch == 0) continue;
    const SeedGroup& grown = found.groups[equal.runs].group;
    write_estimate(record, fmt::format("{}.equal_bytes_{}", name, quality), grown.estimate(quality));
    write_estimate(record, fmt::format("{}.equal_bytes_{}_difference", name, quality),
                   found.difference(grown, found.at_default(0)));
  }
}

std::vector<Program::SummaryKey> summary_keys() {
  return {{"budget_bytes", "that O0 holds at --batch, and the others may hold in runs of equal bytes"},
          {"<recipe>.final_loss", "mean over the test set after the last step, in FP32"},
          {"<recipe>.final_accuracy", "likewise, classifiers only"},
          {"<recipe>.final_accuracy_difference",
           "to O0, mean of the pairs of a seed; of a network that is no classifier final_loss_difference"},
          {"<recipe>.steps, skipped_steps", "made, and of these without an update"},
          {"<recipe>.first_nonfinite_step", "of any seed with a non-finite loss, from 1; 0 without any"},
          {"<recipe>.final_scale_log2", "log2 S after the last step"},
          {"<recipe>.fraction_swallowed", "updates that rounding undid, over all updates"},
          {"<recipe>.mean_fraction_flushed",
           "twin non-zero and run zero, over the twin's non-zero; mean over measured, applied steps, nan "
           "without any"},
          {"<recipe>.mean_norm_share_flushed", "norm of these over the twin's, likewise"},
          {"<recipe>.mean_relative_error", "||run/S - twin|| / ||twin||, likewise"},
          {"<recipe>.held_bytes", "of all roles but temporaries, each at its peak"},
          {"<recipe>.peak_tensor_bytes", "the most that tensors took at one time, temporaries included"},
          {"<recipe>.peak_tensor_bytes_<role>",
           "likewise of weights, master_weights, optimizer_state, activations, gradients, buffers, "
           "temporaries"},
          {"<recipe>.diverged_runs, aborted_runs", "that left no finite loss, that their scaler ended"},
          {"<recipe>.equal_bytes_batch", "the largest whose held_bytes are within budget_bytes"},
          {"<recipe>.equal_bytes_final_accuracy", "with that batch; or equal_bytes_final_loss"},
          {"<recipe>.equal_bytes_final_accuracy_difference",
           "to O0 with --batch, mean of the pairs of a seed; or equal_bytes_final_loss_difference"},
          {"<key>_std, _lower, _upper",
           "of the means over several seeds: sample standard deviation, 95 % t-interval"}};
}

}  // namespace experiments::opt_levels
