#pragma once
/// By what the strategies are judged where runs are disturbed, and how they are ranked.

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace experiments::scaler_comparison {

/// One step of a run as its loss scale went.
struct ScaleStep {
  double scale_log2 = 0;   ///< of the S that the step was made with
  bool disturbed = false;  ///< something befell the step itself
  bool skipped = false;
};

/// How long S was too low after a disturbance.
struct Recovery {
  std::size_t step;      ///< that was disturbed or skipped
  std::size_t steps;     ///< after it that were made while S was too low
  bool complete = true;  ///< false: the run ended first, and it would have taken longer
};

/// A disturbed or skipped step d begins a recovery, which compares S with the S_d that step d was made with.
/// It lasts while S is an octave or more below, log2 S <= log2 S_d - 1: the steps are d + 1, d + 2, ... up to
/// the last one before S is less than an octave below again, none where the update after step d leaves S that
/// near. An S above S_d is no loss: a rule may grow at that very step, and growth that goes too far shows as
/// skips. What is disturbed or skipped meanwhile begins no recovery of its own. `final_scale_log2` is of the S
/// after the last step. An S_d that was too large from the start is never come back to: a rule that begins far
/// above its ceiling pays for that here.
std::vector<Recovery> recoveries(std::span<const ScaleStep> steps, double final_scale_log2);

/// Steps of all recoveries over their number, of one that the run's end cut off as many as there were; 0
/// where there was nothing to recover from.
double mean_recovery_steps(std::span<const Recovery> recoveries);

/// Less is better in each.
struct Criterion {
  std::string_view key;    ///< in tables and in the summary
  std::string_view title;  ///< in texts
  std::string_view unit;
  std::string_view meaning;
};
inline constexpr std::array criteria{
    Criterion{
        "relative_error", "gradient error", "1",
        "||run/S - twin|| / ||twin||, mean over measured, applied steps; inf without a finite final loss"},
    Criterion{
        "lost_steps", "lost steps", "steps",
        "skipped, but not those that no scale saves, and those after the scaler ended the run; inf without a "
        "finite final loss"},
    Criterion{
        "recovery_steps", "recovery, steps", "steps",
        "mean over disturbances and skips: steps after it with S an octave or more lower; nan for a strategy "
        "without one S, inf without a finite final loss"},
    Criterion{"final_loss", "final loss", "1",
              "mean over the test set after the last step, in FP32; inf if not finite"}};

/// Their places in `criteria`.
namespace criterion {
inline constexpr std::size_t relative_error = 0, lost_steps = 1, recovery_steps = 2, final_loss = 3;
}  // namespace criterion

/// A value for each of `criteria`: infinity for the worst there is, NaN where the criterion does not apply.
using CriterionValues = std::array<double, criteria.size()>;

/// 1 for the least value; equal ones share the mean of their places; NaN where the value is NaN, which takes
/// no place.
std::vector<double> shared_ranks(std::span<const double> values);

/// What a strategy's places come to.
struct Standing {
  double rank = 0;           ///< by mean_of_ranks, ties shared
  double mean_of_ranks = 0;  ///< over the criteria that apply
  CriterionValues ranks = {};
};

/// The standings of strategies by their values, in the same order. Every criterion counts the same.
std::vector<Standing> standings(std::span<const CriterionValues> strategies);

}  // namespace experiments::scaler_comparison
