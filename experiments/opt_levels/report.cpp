#include <fmt/format.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/opt_levels/findings.h"
#include "experiments/training/step_tables.h"
#include "fp16/formats.h"
#include "sim/tensor/memory_account.h"

namespace experiments::opt_levels {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
constexpr const char* classifiers = "classifiers only";

/// One recipe of all.
struct RecipeRow {
  const Findings& found;
  std::size_t recipe;

  const std::string& name() const { return found.recipes[recipe].name; }
  const SeedGroup& group() const { return found.at_default(recipe); }
  const EqualBytes& equal() const { return found.equal_bytes[recipe]; }
  bool fits() const { return equal().batch.batch > 0; }
  const RunGroup& grown() const { return found.groups[equal().runs]; }  ///< where a batch fits
};

using Columns = std::vector<Column<RecipeRow>>;

/// A result and how far it is from that of the reference.
Columns quality_columns(const std::string& key) {
  const ResultKey& known = result_key(key);
  return joined(
      interval_columns<RecipeRow>(
          key, known.unit, [key](const RecipeRow& r) { return r.group().estimate(key); }, known.when),
      interval_columns<RecipeRow>(
          key + "_difference", known.unit,
          [key](const RecipeRow& r) {
            return estimate_difference(r.found.at_default(0).values(key), r.group().values(key));
          },
          known.when));
}

Column<RecipeRow> mean_column(const std::string& name, const std::string& key) {
  return {name, result_key(key).unit, [key](const RecipeRow& r) { return r.group().estimate(key).mean; }};
}

TableOf<RecipeRow> policies_table(bool is_classifier) {
  Columns columns{{"recipe", "", [](auto& r) { return r.group().policy; }},
                  {"scaler", "", [](auto& r) { return r.group().scaler; }},
                  {"rank", "1", &RecipeRow::recipe}};
  if (is_classifier) columns = joined(columns, quality_columns("final_accuracy"));
  columns = joined(columns, quality_columns("final_loss"));
  columns.push_back({"diverged_runs", "runs", [](auto& r) { return r.group().diverged_runs(); }});
  columns.push_back({"aborted_runs", "runs", [](auto& r) { return r.group().aborted_runs(); }});
  for (const char* key : {"skipped_steps", "fraction_swallowed", "mean_fraction_flushed",
                          "mean_norm_share_flushed", "mean_relative_error", "held_bytes"})
    columns.push_back(mean_column(key, key));
  for (const sim::MemoryRole role : sim::memory_roles)
    columns.push_back(mean_column(fmt::format("{}_bytes", sim::name_of(role)),
                                  fmt::format("peak_tensor_bytes_{}", sim::name_of(role))));
  columns.push_back({"reference_held_bytes", "bytes",
                     [](auto& r) { return r.found.at_default(0).estimate("held_bytes").mean; }});
  return {.name = "policies", .rows = "each recipe", .columns = columns};
}

/// What is NaN where not even one example fits.
auto if_fits(auto value) {
  return [value](const RecipeRow& r) -> double { return r.fits() ? value(r) : undefined; };
}
auto estimate_if_fits(auto value) {
  return [value](const RecipeRow& r) {
    return r.fits() ? value(r) : Estimate{.mean = undefined, .deviation = undefined, .half_width = undefined};
  };
}

TableOf<RecipeRow> batches_table(const std::string& quality) {
  const ResultKey& known = result_key(quality);
  const auto interval = [&](const std::string& name, auto value) {
    return interval_columns<RecipeRow>(name, known.unit, estimate_if_fits(value), known.when);
  };
  Columns columns{{"recipe", "", &RecipeRow::name},
                  {"rank", "1", &RecipeRow::recipe},
                  {"budget_bytes", "bytes", [](auto& r) { return r.found.budget_bytes; }},
                  {"batch", "examples", [](auto& r) { return r.equal().batch.batch; }},
                  {"held_bytes", "bytes", [](auto& r) { return r.equal().batch.bytes; }},
                  {"steps", "steps", if_fits([](auto& r) { return r.grown().budget.steps; })},
                  {"learning_rate", "1", if_fits([](auto& r) { return r.grown().budget.learning_rate; })}};
  columns =
      joined(columns,
             interval(quality, [quality](const RecipeRow& r) { return r.grown().group.estimate(quality); }));
  columns = joined(columns, interval(quality + "_difference", [](auto& r) {
                     return r.found.difference(r.grown().group, r.found.at_default(0));
                   }));
  columns = joined(columns, interval(quality + "_difference_at_this_batch", [](auto& r) {
                     return r.found.difference(r.grown().group, r.found.groups[r.equal().reference].group);
                   }));
  return {
      .name = "batches", .rows = "each recipe at the largest batch in the bytes of O0", .columns = columns};
}

struct UseRow {
  const Recipe& recipe;
  const OperationUse& use;
};

const TableOf<UseRow> operations_table{
    .name = "operations",
    .rows = "each operation in each of its formats under each recipe",
    .columns = {{"recipe", "", [](auto& r) { return r.recipe.name; }},
                {"operation", "", [](auto& r) { return r.use.operation; }},
                {"format", "", [](auto& r) { return fp16::name_of(r.use.format); }},
                {"operands", "", [](auto& r) { return r.use.operands; }},
                {"operand_bits", "bits", [](auto& r) { return r.use.operand_bits; }},
                {"gradient_format", "", [](auto& r) { return r.use.gradient_format; }},
                {"calls", "calls", [](auto& r) { return r.use.calls; }},
                {"values", "values", [](auto& r) { return r.use.values; }},
                {"values_bytes", "bytes", [](auto& r) { return r.use.bytes; }}}};

struct RunRow {
  const RunGroup& group;
  const TrainingRun& run;
  const CellResult& result;
};

/// What a run comes to, in the order of its results.
std::vector<std::string> run_results(bool is_classifier) {
  std::vector<std::string> keys{"final_loss"};
  if (is_classifier) keys.push_back("final_accuracy");
  return joined(joined<std::string>(keys, {"steps", "skipped_steps", "first_nonfinite_step",
                                           "final_scale_log2", "fraction_swallowed", "mean_fraction_flushed",
                                           "mean_norm_share_flushed", "mean_relative_error", "held_bytes"}),
                peak_keys());
}

TableOf<RunRow> runs_table(bool is_classifier) {
  TableOf<RunRow> table{
      .name = "runs",
      .rows = "each run",
      .columns = {{"recipe", "", [](auto& r) { return r.group.group.policy; }},
                  {"scaler", "", [](auto& r) { return r.group.group.scaler; }},
                  {"seed", "", [](auto& r) { return r.run.seed; }},
                  {"batch", "examples", [](auto& r) { return r.group.budget.batch; }},
                  {"learning_rate", "1", [](auto& r) { return r.group.budget.learning_rate; }}}};
  for (const std::string& key : run_results(is_classifier))
    table.columns.push_back({key, result_key(key).unit,
                             [key](const RunRow& r) { return r.result.value(key); }, result_key(key).when});
  table.columns.push_back({"abort_reason", "", [](auto& r) { return r.result.abort_reason; }});
  return table;
}

void write_tables(RunRecord& record, const Findings& found) {
  std::vector<RecipeRow> recipes;
  for (std::size_t i = 0; i < found.recipes.size(); ++i) recipes.push_back({found, i});
  policies_table(found.is_classifier()).write(record, recipes);
  batches_table(std::string(found.quality())).write(record, recipes);
  const auto add_use = operations_table.start(record);
  for (std::size_t i = 0; i < found.recipes.size(); ++i) {
    for (const OperationUse& use : found.operations[i]) add_use({found.recipes[i], use});
  }
  const TableOf<RunRow> runs = runs_table(found.is_classifier());
  const auto add_run = runs.start(record);
  for (const RunGroup& group : found.groups) {
    for (std::size_t i = 0; i < group.runs.size(); ++i)
      add_run({group, group.runs[i], group.group.results[i]});
  }
  const std::vector<InstrumentedRun> at_default =
      instrumented(found, std::span(found.groups).first(found.recipes.size()));
  write_steps(record, at_default);
  write_skips(record, at_default);
}

const SummaryOf<Findings> budget_summary{
    {{"budget_bytes", "that O0 holds at --batch, and the others may hold in runs of equal bytes",
      &Findings::budget_bytes}}};

SummaryOf<SeedGroup> results_summary() {
  std::vector<std::string> keys = run_results(true);
  std::erase(keys, "first_nonfinite_step");
  SummaryOf<SeedGroup> summary{result_rows("<recipe>.", keys)};
  summary.rows.push_back({"<recipe>.first_nonfinite_step",
                          "of any seed with a loss that is not finite, from 1; 0 without any",
                          earliest_nonfinite_step});
  summary.rows = joined(summary.rows, failure_rows("<recipe>."));
  return summary;
}

SummaryOf<RecipeRow> recipe_summary() {
  SummaryOf<RecipeRow> summary;
  const auto add = [&](const std::string& key, const std::string& meaning, bool grown, auto value) {
    for (const char* quality : {"final_accuracy", "final_loss"}) {
      summary.rows.push_back({fmt::format(fmt::runtime(key), quality), meaning,
                              [quality, grown, value](const RecipeRow& r) {
                                const bool is_there = r.found.quality() == quality && r.recipe > 0;
                                return is_there && (!grown || r.fits()) ? std::optional(value(r))
                                                                        : std::nullopt;
                              },
                              quality == std::string_view("final_loss") ? "no classifier" : classifiers});
    }
  };
  add("<recipe>.{}_difference", "to O0, mean of the pairs of a seed", false,
      [](auto& r) { return r.found.difference(r.group(), r.found.at_default(0)); });
  summary.rows.push_back({"<recipe>.equal_bytes_batch",
                          "the largest whose held_bytes are within budget_bytes",
                          [](auto& r) { return r.equal().batch.batch; }});
  add("<recipe>.equal_bytes_{}", "with that batch", true,
      [](auto& r) { return r.grown().group.estimate(r.found.quality()); });
  add("<recipe>.equal_bytes_{}_difference",
      "with that batch, to O0 with --batch, mean of the pairs of a seed", true,
      [](auto& r) { return r.found.difference(r.grown().group, r.found.at_default(0)); });
  return summary;
}

constexpr const char* rounding_all_reduce = "--ranks above 1 and an --allreduce that is not in fp32";

SummaryOf<AllReduceCost> costs_summary(std::string_view quality) {
  const std::string meaning =
      quality == "final_accuracy"
          ? "to the same runs all-reduced in FP32, mean of the pairs of a seed"
          : "to the same runs all-reduced in FP32, mean of the pairs of a seed over theirs";
  return {{{fmt::format("<recipe>.all_reduce_{}", quality), meaning,
            [quality](const AllReduceCost& r) { return r.of(quality); }, rounding_all_reduce}}};
}

void write_summary(RunRecord& record, const Findings& found) {
  budget_summary.write(record, found);
  const SummaryOf<SeedGroup> results = results_summary();
  const SummaryOf<RecipeRow> recipes = recipe_summary();
  for (std::size_t i = 0; i < found.recipes.size(); ++i) {
    results.write(record, found.at_default(i), {found.recipes[i].name});
    recipes.write(record, {found, i}, {found.recipes[i].name});
  }
  for (const AllReduceCost& cost : found.all_reduce_costs())
    costs_summary(found.quality()).write(record, cost, {cost.name});
}

/// Into the manifest: each policy's roles, the options of optimizer and scalers.
void write_settings(RunRecord& record, const Findings& found) {
  for (const Recipe& recipe : found.recipes) {
    for (const auto& [role, value] : sim::roles_of(recipe.policy))
      record.setting(fmt::format("recipe.{}.{}", recipe.name, role), value);
    record_settings(record, "scaler", recipe.name, sim::options_of(recipe.make_scaler()));
  }
  const auto optimizer = found.setup.trainer({}).optimizer().options();
  record_settings(record, "optimizer", names::name_in(found.options.training.optimizer), optimizer);
}

}  // namespace

Outputs outputs() {
  return outputs_of(policies_table(true), batches_table("final_accuracy"), operations_table, runs_table(true),
                    steps_table, skips_table, budget_summary, results_summary(), recipe_summary(),
                    costs_summary("final_accuracy"), costs_summary("final_loss"));
}

void report(Run& run, const Findings& found) {
  write_settings(run.record(), found);
  write_tables(run.record(), found);
  write_summary(run.record(), found);
  draw_figures(run, found);
  write_verdict(run.record(), found);
}

}  // namespace experiments::opt_levels
