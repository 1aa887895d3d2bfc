#include "experiments/scale_policy_order/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "experiments/frame/text_table.h"
#include "fp16/names.h"
#include "sim/optimizers/registry.h"
#include "sim/tensor/log2.h"

namespace experiments::scale_policy_order {
namespace {

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
  TextTable table{.columns = {"recipe", "factor"}, .rows = {}};
  for (const std::string& optimizer : options.optimizers) {
    for (const char* column : {"expected", "measured", "loss - right"})
      table.columns.push_back(fmt::format("{}: {}", optimizer, column));
  }
  table.columns.push_back("PyTorch");
  for (const Recipe& recipe : recipes()) {
    if (recipe.is_reference()) continue;
    std::vector<std::string> cells{std::string(recipe.name), std::string(recipe.formula)};
    for (const std::string& optimizer : options.optimizers) {
      const Result& result = found.of(recipe.name, optimizer);
      cells.push_back(factor_text(spread(result, &StepMeasurement::predicted).median));
      cells.push_back(factor_text(spread(result, &StepMeasurement::factor).median));
      cells.push_back(difference_text(found, result));
    }
    cells.push_back(first_word(pytorch_answer(recipe)));
    table.rows.push_back(std::move(cells));
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

std::string test_loss(const Result& result) {
  return result.diverged_runs() > 0 ? "NaN" : fmt::format("{:.3f}", estimate(result.losses()).mean);
}

/// How far from the prediction an optimizer whose updates are linear in the gradient is at any step, over the
/// recipes whose factor is predicted step by step.
double largest_disagreement(const Findings& found, const std::string& optimizer) {
  double largest = 0;
  for (const Recipe& recipe : recipes()) {
    if (recipe.is_right || recipe.on_average || !recipe.predicted) continue;
    const Spread agreement = agreement_of(found.of(recipe.name, optimizer));
    if (!std::isfinite(agreement.median)) continue;
    largest = std::max({largest, agreement.highest - 1, 1 - agreement.lowest});
  }
  return largest;
}

std::string linear_sentence(const Findings& found, const std::string& optimizer) {
  const auto factor = [&](std::string_view recipe) {
    return factor_text(spread(found.of(recipe, optimizer), &StepMeasurement::factor).median);
  };
  const auto loss = [&](std::string_view recipe) { return test_loss(found.of(recipe, optimizer)); };
  return fmt::format(
      "{}: each mistake puts on the learning rate the factor that follows from its calls, within {:.1g} of "
      "it at every step unless it is predicted on average only. Never unscaled it is {} times too large and "
      "the test loss ends at {} in the place of {}; unscaled twice it is {} (loss {}), clipped before "
      "unscaling {} ({}). "
      "Clipping while S is on hides that unscaling was forgotten ({}; {}).",
      optimizer, largest_disagreement(found, optimizer), factor("never_unscaled"), loss("never_unscaled"),
      loss("right"), factor("unscaled_twice"), loss("unscaled_twice"), factor("clip_before_unscale"),
      loss("clip_before_unscale"), factor("clipped_never_unscaled"), loss("clipped_never_unscaled"));
}

std::string normalised_sentence(const Findings& found, const Options& options, const std::string& optimizer) {
  const auto factor = [&](std::string_view recipe) {
    return factor_text(spread(found.of(recipe, optimizer), &StepMeasurement::factor).median);
  };
  return fmt::format(
      "{}: a factor common to all gradients is divided out again, so that never unscaling goes unnoticed "
      "({}). What makes them smaller does not, because epsilon weighs S times as much: unscaled twice {}, "
      "clipped before unscaling {}. And {} steps where one belongs are {} times the way.",
      optimizer, factor("never_unscaled"), factor("unscaled_twice"), factor("clip_before_unscale"),
      options.micro_batches, factor("step_each_micro_batch"));
}

/// Of PyTorch's errors, and of overflows that nobody sees.
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
        "threshold: with {}, {} of {} steps were applied with gradients that had overflowed, and S rose to "
        "{}.",
        hidden.optimizer, unseen, steps, factor_text(scale));
  return text;
}

}  // namespace

void write_verdict(RunRecord& record, const Findings& found, const Options& options,
                   const std::string& setting) {
  const auto find = [&](bool normalising) {
    return std::ranges::find_if(options.optimizers, [normalising](const std::string& optimizer) {
      return normalises(optimizer) == normalising && !decays(optimizer);
    });
  };
  const auto linear = find(false), normalised = find(true);
  if (linear != options.optimizers.end()) record.verdict(linear_sentence(found, *linear));
  if (normalised != options.optimizers.end())
    record.verdict(normalised_sentence(found, options, *normalised));
  record.verdict(silence_sentence(found, options));
  record.verdict(verdict_table(found, options).text());
  record.verdict(setting +
                 " Factors: medians over the steps of the first seed. loss - right: the test loss less the "
                 "right recipe's, mean of the pairs of a seed; [ ]: 95 % t-interval, uncorrected for their "
                 "number.");
}

}  // namespace experiments::scale_policy_order
