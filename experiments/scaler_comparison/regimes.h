#pragma once
/// What disturbs the training runs that scalers are compared in.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/training/training_setup.h"

namespace experiments::scaler_comparison {

/// Besides calm training: batches that count many-fold, a learning rate that falls in the middle of the run,
/// losses that are NaN.
enum class Regime { calm, spiky, drifting, poisoned };

/// "calm", "spiky", "drifting", "poisoned".
std::string_view name_of(Regime regime);

/// The regimes of a list such as "spiky,poisoned", in its order; "all" is all of them. Throws std::invalid_argument, one
/// line that names --regimes, for what is no such list.
std::vector<Regime> parse_regimes(std::string_view list);

struct Disturbances {
  int every = 25;  ///< steps: the last of every so many is an outlier, or poisoned
  /// What an outlier's loss is multiplied with. 2^4: a scaler that doubles S until it overflows and then
  /// halves it stays within two octaves of the largest S that does not overflow, and from batch to batch that
  /// moves by about one; so an outlier four octaves up overflows wherever S was near its ceiling. FP32
  /// survives it: under Adam no outlier, however large, makes an update more than 0.1 / sqrt(0.001) = 3.2
  /// times as large; under SGD, without clipping, the update grows by the whole factor, and 2^6 ruins the
  /// mlp.
  double outlier_factor = 16;
  double drift_factor = 0.1;  ///< of the learning rate, from the middle of the run on
};

/// Whether something befalls the step (from 0) itself. Never in calm and drifting runs.
bool is_disturbed(Regime regime, std::size_t step, const Disturbances& disturbances);

/// For Trainer::step().
float loss_factor(Regime regime, std::size_t step, const Disturbances& disturbances);

/// A `step` schedule that drops once, in the middle of the steps after the warm-up, in place of `schedule`,
/// of which it keeps the warm-up (at most half of the run). As every schedule it counts applied steps: under
/// a scaler that skips, the drop comes that much later.
std::string drifting_schedule(const std::string& schedule, int steps, double factor);

/// What a regime does to runs of this schedule, in a clause.
std::string description_of(Regime regime, const Disturbances& disturbances, const std::string& schedule);

/// Data and network of the runs of each regime.
class RegimeSetups {
 public:
  /// `calm`, made of `options`, must outlive this. Throws std::invalid_argument where there are too few steps
  /// for a disturbance.
  RegimeSetups(const TrainingSetup& calm, const TrainingOptions& options, const std::vector<Regime>& regimes,
               const Disturbances& disturbances);

  const TrainingSetup& of(Regime regime) const { return regime == Regime::drifting ? *drifting_ : calm_; }

 private:
  const TrainingSetup& calm_;
  TrainingOptions drifting_options_;
  std::unique_ptr<const TrainingSetup> drifting_;  ///< null where no run drifts
};

}  // namespace experiments::scaler_comparison
