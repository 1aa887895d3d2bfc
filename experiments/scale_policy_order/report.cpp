#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/columns.h"
#include "experiments/frame/text_table.h"
#include "experiments/scale_policy_order/findings.h"
#include "fp16/names.h"
#include "sim/optimizers/registry.h"
#include "sim/tensor/log2.h"

namespace experiments::scale_policy_order {
namespace {

/// "backward 1, update": calls of what does not come first are numbered, from 0.
std::string words(const std::vector<Call>& calls) {
  std::vector<std::string> names;
  for (const Call& call : calls)
    names.push_back(call.which == 0 ? std::string(name_of(call.action))
                                    : fmt::format("{} {}", name_of(call.action), call.which));
  return fmt::format("{}", fmt::join(names, ", "));
}

/// How far the factor on the learning rate follows from the calls of a recipe.
std::string_view prediction(const Recipe& recipe) {
  if (!recipe.predicted) return "not";
  return recipe.on_average ? "on average" : "every step";
}

/// A recipe under one optimizer, with what its steps and runs came to.
struct ResultRow {
  const Result& result;
  const Findings& found;
  Spread predicted = spread(result, &StepMeasurement::predicted);
  Spread factor = spread(result, &StepMeasurement::factor);
  Spread agreement = agreement_of(result);
  Estimate loss = estimate(result.losses());
  Estimate difference = found.difference(result);

  const Recipe& recipe() const { return *result.recipe; }
  double median(double StepMeasurement::*column) const { return spread(result, column).median; }
  std::size_t steps(bool StepMeasurement::*what) const {
    return static_cast<std::size_t>(std::ranges::count_if(result.steps, what));
  }
};

std::vector<Column<ResultRow>> spread_columns(const std::string& name, Spread ResultRow::*quantity) {
  return {{name + "_median", "1", [quantity](const ResultRow& r) { return (r.*quantity).median; }},
          {name + "_lowest", "1", [quantity](const ResultRow& r) { return (r.*quantity).lowest; }},
          {name + "_highest", "1", [quantity](const ResultRow& r) { return (r.*quantity).highest; }}};
}

TableOf<ResultRow> recipes_table() {
  using Row = ResultRow;
  std::vector<Column<Row>> columns{
      {"recipe", "", [](auto& r) { return r.recipe().name; }},
      {"right_recipe", "", [](auto& r) { return r.recipe().right; }},
      {"optimizer", "", [](auto& r) { return r.result.optimizer; }},
      {"calls_each_micro_batch", "", [](auto& r) { return words(r.recipe().each_micro_batch); }},
      {"calls_at_boundary", "", [](auto& r) { return words(r.recipe().at_boundary); }},
      {"pytorch", "", [](auto& r) { return pytorch_answer(r.recipe()); }},
      {"predicted_formula", "", [](auto& r) { return r.recipe().formula; }}};
  columns = joined(columns, spread_columns("predicted_factor", &Row::predicted));
  columns = joined(columns, spread_columns("measured_factor", &Row::factor));
  columns = joined(columns, spread_columns("measured_over_predicted", &Row::agreement));
  columns = joined<Column<Row>>(
      columns,
      {{"predicted", "", [](auto& r) { return prediction(r.recipe()); }},
       {"cosine_median", "1", [](auto& r) { return r.median(&StepMeasurement::cosine); }},
       {"predicted_loss_ratio_median", "1",
        [](auto& r) { return r.median(&StepMeasurement::predicted_loss_ratio); }},
       {"measured_loss_ratio_median", "1", [](auto& r) { return r.median(&StepMeasurement::loss_ratio); }},
       {"steps_measured", "steps", [](auto& r) { return r.result.steps.size(); }},
       {"steps_right_skips", "steps",
        [](auto& r) { return r.result.steps.size() - r.steps(&StepMeasurement::right_applied); }},
       {"steps_overflow_unseen", "steps", [](auto& r) { return r.steps(&StepMeasurement::unseen); }},
       {"final_loss_mean", "1", [](auto& r) { return r.loss.mean; }},
       {"final_loss_half_width", "1", [](auto& r) { return r.loss.half_width; }},
       {"difference_mean", "1", [](auto& r) { return r.difference.mean; }},
       {"difference_half_width", "1", [](auto& r) { return r.difference.half_width; }},
       {"final_accuracy_mean", "1", [](auto& r) { return estimate(r.result.accuracies()).mean; }},
       {"diverged_runs", "runs", [](auto& r) { return r.result.diverged_runs(); }},
       {"runs", "runs", [](auto& r) { return r.result.runs.size(); }}});
  return {.name = "recipes", .rows = "each recipe under each optimizer", .columns = columns};
}

/// The columns that name the recipe and the optimizer, and more.
template <class Row>
std::vector<Column<Row>> columns_of_result(const std::vector<Column<Row>>& more) {
  return joined<Column<Row>>({{"recipe", "", [](auto& r) { return r.result.recipe->name; }},
                              {"optimizer", "", [](auto& r) { return r.result.optimizer; }}},
                             more);
}

struct RunRow {
  const Result& result;
  const RunResult& run;
};

const TableOf<RunRow> runs_table{
    .name = "runs",
    .rows = "each run",
    .columns =
        columns_of_result<RunRow>({{"seed", "", [](auto& r) { return r.run.seed; }},
                                   {"final_loss", "1", [](auto& r) { return r.run.loss; }},
                                   {"final_accuracy", "1", [](auto& r) { return r.run.accuracy; }},
                                   {"steps_applied", "steps", [](auto& r) { return r.run.applied; }},
                                   {"steps_skipped", "steps", [](auto& r) { return r.run.skipped; }},
                                   {"steps_overflow_unseen", "steps", [](auto& r) { return r.run.unseen; }},
                                   {"final_scale", "1", [](auto& r) { return r.run.final_scale; }}})};

struct StepRow {
  const Result& result;
  const StepMeasurement& step;
};

const TableOf<StepRow> steps_table{
    .name = "steps",
    .rows = "each measured step",
    .columns = columns_of_result<StepRow>(
        {{"step", "steps", [](auto& r) { return r.step.step; }},
         {"scale", "1", [](auto& r) { return r.step.scale; }},
         {"predicted_factor", "1", [](auto& r) { return r.step.predicted; }},
         {"measured_factor", "1", [](auto& r) { return r.step.factor; }},
         {"cosine", "1", [](auto& r) { return r.step.cosine; }},
         {"predicted_loss_ratio", "1", [](auto& r) { return r.step.predicted_loss_ratio; }},
         {"measured_loss_ratio", "1", [](auto& r) { return r.step.loss_ratio; }},
         {"right_applied", "0 or 1", [](auto& r) { return int{r.step.right_applied}; }},
         {"applied", "0 or 1", [](auto& r) { return int{r.step.applied}; }},
         {"overflow_unseen", "0 or 1", [](auto& r) { return int{r.step.unseen}; }}})};

/// A number of recipes of two losses.
auto of_two_losses(double StepMeasurement::*column) {
  return [column](const ResultRow& r) {
    return r.recipe().two_losses ? std::optional(r.median(column)) : std::nullopt;
  };
}

const SummaryOf<ResultRow> results_summary{
    {{"<recipe>.<optimizer>.predicted_factor",
      "median over the steps of the factor on the learning rate that follows from the calls",
      [](auto& r) { return r.predicted.median; }},
     {"<recipe>.<optimizer>.measured_factor",
      "median of the factor by least squares of the update on the right one",
      [](auto& r) { return r.factor.median; }},
     {"<recipe>.<optimizer>.measured_over_predicted", "median of the ratio",
      [](auto& r) { return r.agreement.median; }},
     {"<recipe>.<optimizer>.cosine", "median cosine of the update and the right one",
      [](auto& r) { return r.median(&StepMeasurement::cosine); }},
     {"<recipe>.<optimizer>.predicted_loss_ratio",
      "of two losses: the factor of the second one's gradients over that of the first's, from the calls",
      of_two_losses(&StepMeasurement::predicted_loss_ratio)},
     {"<recipe>.<optimizer>.measured_loss_ratio",
      "the same measured, where updates are linear in the gradient",
      of_two_losses(&StepMeasurement::loss_ratio)},
     {"<recipe>.<optimizer>.final_loss", "test loss after training by the recipe, mean over the seeds",
      [](auto& r) { return r.loss.mean; }},
     {"<recipe>.<optimizer>.final_loss_difference",
      "to the right recipe's of the same seed, mean over the seeds",
      [](auto& r) { return r.difference.mean; }},
     {"<recipe>.<optimizer>.final_loss_difference_half_width", "of its 95 % t-interval",
      [](auto& r) { return r.difference.half_width; }},
     {"<recipe>.<optimizer>.diverged_runs", "with a weight or a test loss that is infinite or NaN",
      [](auto& r) { return r.result.diverged_runs(); }}}};

void write_results(RunRecord& record, const Findings& found) {
  const TableOf<ResultRow> recipes = recipes_table();
  const auto add_recipe = recipes.start(record);
  const auto add_run = runs_table.start(record);
  const auto add_step = steps_table.start(record);
  for (const Result& result : found.results) {
    const ResultRow row{result, found};
    add_recipe(row);
    for (const RunResult& run : result.runs) add_run({result, run});
    for (const StepMeasurement& step : result.steps) add_step({result, step});
    results_summary.write(record, row, {result.recipe->name, result.optimizer});
  }
}

/// A power of two where plain digits would be many.
std::string factor_text(double factor) {
  if (!std::isfinite(factor)) return "-";
  const double size = std::abs(factor);
  if (size == 0 || (size > 1.0 / 64 && size < 64)) return fmt::format("{:.3g}", factor);
  return fmt::format("{}2^{:.1f}", factor < 0 ? "-" : "", sim::log2_of(size));
}

std::string difference_text(const Findings& found, const Result& result) {
  if (result.diverged_runs() > 0)
    return fmt::format("NaN in {} of {}", result.diverged_runs(), result.runs.size());
  return signed_with_interval(found.difference(result), 1, 3);
}

/// "raises" of "raises: unscale_() has already ...".
std::string first_word(const std::string& text) {
  return text.substr(0, text.find(':'));
}

TextTable verdict_table(const Findings& found, const Options& options) {
  TextTable table{
      .columns = {"recipe", "factor", "predicted"},
      .rows = {},
      .notes = {
          "predicted: whether the factor follows from the calls at every step, on average over the steps, "
          "or not."}};
  for (const std::string& optimizer : options.optimizers) {
    for (const char* column : {"expected", "measured", "loss - right"})
      table.columns.push_back(fmt::format("{}: {}", optimizer, column));
  }
  table.columns.push_back("PyTorch");
  const auto add = [&](const Recipe& recipe) {
    std::vector<std::string> cells{std::string(recipe.name) + (recipe.is_right ? " (right)" : ""),
                                   std::string(recipe.formula), std::string(prediction(recipe))};
    for (const std::string& optimizer : options.optimizers) {
      const Result& result = found.of(recipe.name, optimizer);
      cells.push_back(factor_text(spread(result, &StepMeasurement::predicted).median));
      cells.push_back(factor_text(spread(result, &StepMeasurement::factor).median));
      cells.push_back(difference_text(found, result));
    }
    cells.push_back(first_word(pytorch_answer(recipe)));
    table.rows.push_back(std::move(cells));
  };
  // The mistakes, and below them the right way that is no reference.
  for (const bool right : {false, true}) {
    for (const Recipe& recipe : recipes()) {
      if (recipe.is_right == right && !recipe.is_reference()) add(recipe);
    }
  }
  return table;
}

bool normalises(const std::string& optimizer) {
  return sim::find_optimizer(names::name_in(optimizer)).normalises_gradients;
}

/// Weight decay shares no factor of the gradients, so that predictions do not hold of it.
bool decays(const std::string& optimizer) {
  const auto [name, given] = names::parse_numeric_spec(optimizer);
  return std::ranges::any_of(sim::make_optimizer(name, given)->options(), [](const auto& option) {
    return option.first == "weight_decay" && option.second != 0;
  });
}

constexpr double close =
    0.1;  ///< a factor is what was predicted, or an update the right one, to within this share

/// The mean over the steps of the measured factor, over that of the predicted one.
double mean_agreement(const Result& result) {
  double measured = 0, predicted = 0;
  for (const StepMeasurement& step : result.steps) {
    if (!step.right_applied || !std::isfinite(step.factor) || !std::isfinite(step.predicted)) continue;
    measured += step.factor;
    predicted += step.predicted;
  }
  return measured / predicted;
}

/// The mistakes by how far they are predicted, and how far from that they are.
struct Predictions {
  std::size_t held = 0;  ///< predicted at every step, and close at every step
  double largest_held = 0;
  std::vector<std::string_view> missed;  ///< predicted at every step, and not close at one at least
  double largest_missed = 0;
  std::vector<double> on_average;  ///< mean_agreement() of those whose mean over steps is predicted
  std::size_t none = 0;
  std::size_t unmeasured = 0;  ///< predicted at every step, but no step had two updates to compare

  Predictions(const Findings& found, const std::string& optimizer) {
    for (const Recipe& recipe : recipes()) {
      if (!recipe.is_right) add(recipe, found.of(recipe.name, optimizer));
    }
  }

  std::size_t every_step() const { return held + missed.size(); }
  std::size_t mistakes() const { return every_step() + unmeasured + on_average.size() + none; }

 private:
  void add(const Recipe& recipe, const Result& result) {
    const Spread agreement = agreement_of(result);
    const double distance = std::max(agreement.highest - 1, 1 - agreement.lowest);
    if (!recipe.predicted) {
      ++none;
    } else if (recipe.on_average) {
      on_average.push_back(mean_agreement(result));
    } else if (!std::isfinite(agreement.median)) {
      ++unmeasured;
    } else if (distance <= close) {
      ++held;
      largest_held = std::max(largest_held, distance);
    } else {
      missed.push_back(recipe.name);
      largest_missed = std::max(largest_missed, distance);
    }
  }
};

/// "; of 3 the mean over the steps is predicted, and is 0.735 to 1 of that; of 4 nothing is predicted".
std::string other_predictions(const Predictions& predictions) {
  const Spread means = spread(predictions.on_average);
  std::string text;
  if (!predictions.missed.empty())
    text += fmt::format("; {} depart{} from it at some steps, by up to {:.2g} of it",
                        fmt::join(predictions.missed, ", "), predictions.missed.size() == 1 ? "s" : "",
                        predictions.largest_missed);
  text += fmt::format("; of {} the mean over the steps is predicted", predictions.on_average.size());
  if (std::isfinite(means.median))
    text += fmt::format(", and is {:.3g} to {:.3g} of that", means.lowest, means.highest);
  text += fmt::format("; of {} nothing is predicted", predictions.none);
  if (predictions.unmeasured > 0)
    text += fmt::format("; {} had no step to measure it at", predictions.unmeasured);
  return text;
}

bool is_close_to_right(const Result& result) {
  const double factor = spread(result, &StepMeasurement::factor).median;
  return result.diverged_runs() == 0 && std::abs(factor - 1) <= close;
}

std::string linear_sentence(const Findings& found, const std::string& optimizer) {
  const Predictions predictions(found, optimizer);
  if (predictions.every_step() == 0)
    return fmt::format(
        "With {} no mistake's factor was measured: at no step did both recipes have an update to compare.",
        optimizer);
  std::string text = fmt::format(
      "With {} {} of the {} mistakes multiply the learning rate at every step by the factor that follows "
      "from their calls{}{}.",
      optimizer, predictions.held, predictions.mistakes(),
      predictions.held > 0 ? fmt::format(", within {:.2g} of it", predictions.largest_held) : "",
      other_predictions(predictions));
  if (is_close_to_right(found.of("clipped_never_unscaled", optimizer)))
    text += " Clipping while S is on hides that unscaling was forgotten.";
  return text;
}

/// What a common factor of all gradients does where the optimizer divides by their size.
std::string never_unscaled_sentence(const Findings& found, const std::string& optimizer) {
  const Result& never = found.of("never_unscaled", optimizer);
  const Estimate difference = found.difference(never);
  if (never.diverged_runs() > 0)
    return fmt::format("With {} never unscaling ends in {}.", optimizer, difference_text(found, never));
  const double factor = spread(never, &StepMeasurement::factor).median;
  if (is_close_to_right(never) && !(std::abs(difference.mean) > difference.half_width))
    return fmt::format(
        "With {} a factor common to all gradients is divided out again, so that never unscaling goes "
        "unnoticed.",
        optimizer);
  return fmt::format(
      "With {} a factor common to all gradients is not wholly divided out again: never unscaling has the "
      "factor {} and changes the loss by {}.",
      optimizer, factor_text(factor), difference_text(found, never));
}

std::string normalised_sentence(const Findings& found, const std::string& optimizer) {
  const auto factor_of = [&](std::string_view recipe) {
    return spread(found.of(recipe, optimizer), &StepMeasurement::factor).median;
  };
  std::string text = never_unscaled_sentence(found, optimizer);
  const double twice = factor_of("unscaled_twice"), steps = factor_of("step_each_micro_batch");
  if (std::abs(twice - 1) > 0.02)
    text += fmt::format(
        " Unscaling twice has the factor {}: epsilon then weighs S times as much, and where S has moved the "
        "moments remember gradients of another one.",
        factor_text(twice));
  if (steps > 1 + close)
    text += fmt::format(" A step for each micro-batch has the factor {}.", factor_text(steps));
  return text;
}

/// Which mistakes PyTorch notices, and overflows that nobody sees.
std::string silence_sentence(const Findings& found, const Options& options) {
  std::size_t mistakes = 0, raised = 0, silent = 0;
  for (const Recipe& recipe : recipes()) {
    if (recipe.is_right) continue;
    const std::string answer = pytorch_answer(recipe);
    ++mistakes;
    raised += answer.starts_with("raises");
    silent += answer == "silent";
  }
  const Result& hidden = found.of("clip_value_before_unscale", options.optimizers.front());
  std::uint64_t unseen = 0, steps = 0;
  double scale = 0;
  for (const RunResult& run : hidden.runs) {
    unseen += run.unseen;
    steps += run.applied + run.skipped;
    scale = std::max(scale, run.final_scale);
  }
  std::string text = fmt::format(
      "PyTorch's GradScaler raises an error at {} of the {} mistakes and is silent at {}; the other "
      "{} take a loop without it.",
      raised, mistakes, silent, mistakes - raised - silent);
  if (unseen > 0)
    text += fmt::format(
        " Clipping values before unscaling even hides overflow, since infinity becomes the "
        "threshold: with {}, {} of {} steps {} applied with gradients that had overflowed, and S rose to "
        "{}.",
        hidden.optimizer, unseen, steps, unseen == 1 ? "was" : "were", factor_text(scale));
  return text;
}

void write_verdict(RunRecord& record, const Findings& found, const Options& options) {
  const auto find = [&](bool normalising) {
    return std::ranges::find_if(options.optimizers, [normalising](const std::string& optimizer) {
      return normalises(optimizer) == normalising && !decays(optimizer);
    });
  };
  const auto linear = find(false), normalised = find(true);
  if (linear != options.optimizers.end()) record.verdict(linear_sentence(found, *linear));
  if (normalised != options.optimizers.end()) record.verdict(normalised_sentence(found, *normalised));
  record.verdict(silence_sentence(found, options));
  record.verdict(verdict_table(found, options).text());
}

}  // namespace

Outputs outputs() {
  return outputs_of(recipes_table(), runs_table, steps_table, results_summary);
}

void report(Run& run, const Findings& found, const Options& options, const std::string& setting) {
  write_results(run.record(), found);
  draw_figures(run, found, options, setting);
  write_verdict(run.record(), found, options);
  run.record().verdict(
      setting +
      " Factors: medians over the steps of the first seed. loss - right: the test loss less the "
      "right recipe's, mean of the pairs of a seed; [ ]: 95 % t-interval, uncorrected for their "
      "number.");
}

}  // namespace experiments::scale_policy_order
