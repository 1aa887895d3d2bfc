#include "experiments/scaler_comparison/regimes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <ranges>
#include <stdexcept>

#include "fp16/names.h"

namespace experiments::scaler_comparison {
namespace {

struct RegimeRow {
  std::string_view name;
  Regime regime;
};

/// In the order of the enumeration.
constexpr std::array rows{RegimeRow{"calm", Regime::calm}, RegimeRow{"spiky", Regime::spiky},
                          RegimeRow{"drifting", Regime::drifting}, RegimeRow{"poisoned", Regime::poisoned}};
static_assert(names::has_unique_names(rows));

bool has_disturbed_steps(Regime regime) {
  return regime == Regime::spiky || regime == Regime::poisoned;
}

void reject_undisturbed(const std::vector<Regime>& regimes, const Disturbances& disturbances, int steps) {
  if (disturbances.every <= steps || std::ranges::none_of(regimes, has_disturbed_steps)) return;
  throw std::invalid_argument(
      fmt::format("--disturb-every: {} leaves no step disturbed; allowed with --steps {}: at most {}",
                  disturbances.every, steps, steps));
}

}  // namespace

std::string_view name_of(Regime regime) {
  return rows[static_cast<std::size_t>(regime)].name;
}

std::vector<Regime> parse_regimes(std::string_view list) {
  std::vector<Regime> regimes;
  if (list == "all") {
    for (const RegimeRow& row : rows) regimes.push_back(row.regime);
    return regimes;
  }
  for (const auto& part : std::views::split(list, ',')) {
    const std::string name(part.begin(), part.end());
    const Regime regime =
        from_option("--regimes", [&] { return names::find_by_name(rows, "regime", name).regime; });
    if (std::ranges::find(regimes, regime) != regimes.end())
      throw std::invalid_argument(
          fmt::format("--regimes: '{}' stands there twice; allowed: each once", name));
    regimes.push_back(regime);
  }
  if (regimes.empty()) {
    throw std::invalid_argument(fmt::format("--regimes: an empty list; allowed: all, or names out of {}",
                                            fmt::join(names::names_of(rows), ", ")));
  }
  return regimes;
}

bool is_disturbed(Regime regime, std::size_t step, const Disturbances& disturbances) {
  return has_disturbed_steps(regime) && (step + 1) % static_cast<std::size_t>(disturbances.every) == 0;
}

float loss_factor(Regime regime, std::size_t step, const Disturbances& disturbances) {
  if (!is_disturbed(regime, step, disturbances)) return 1;
  return regime == Regime::spiky ? static_cast<float>(disturbances.outlier_factor)
                                 : std::numeric_limits<float>::quiet_NaN();
}

std::string drifting_schedule(const std::string& schedule, int steps, double factor) {
  const names::GivenOptions given = names::parse_numeric_spec(schedule).second;
  const auto option = [&](const std::string& name) {
    const auto found = given.find(name);
    return found == given.end() ? 0 : static_cast<int>(found->second);
  };
  const int warmup = std::min(option("warmup_steps"), steps / 2);
  const int period = std::max(1, (steps - warmup + 1) / 2);
  return fmt::format("step:warmup_steps={}:counts_skipped_steps={}:period={}:decay={}", warmup,
                     option("counts_skipped_steps"), period, factor);
}

std::string description_of(Regime regime, const Disturbances& disturbances, const std::string& schedule) {
  switch (regime) {
    case Regime::calm:
      return "nothing disturbs the run";
    case Regime::spiky:
      return fmt::format("the last batch of every {} steps counts {:g}-fold in the loss", disturbances.every,
                         disturbances.outlier_factor);
    case Regime::drifting:
      return fmt::format(
          "the learning rate is {:g}-fold from the middle of the run on{}", disturbances.drift_factor,
          names::name_in(schedule) == "constant" ? ""
                                                 : fmt::format(", in place of the schedule {}", schedule));
    case Regime::poisoned:
      return fmt::format(
          "the loss of the last of every {} steps is NaN, which no scale cures; FP32 leaves these out",
          disturbances.every);
  }
  return {};
}

RegimeSetups::RegimeSetups(const TrainingSetup& calm, const TrainingOptions& options,
                           const std::vector<Regime>& regimes, const Disturbances& disturbances)
    : calm_(calm), drifting_options_(options) {
  reject_undisturbed(regimes, disturbances, calm.steps());
  if (std::ranges::find(regimes, Regime::drifting) == regimes.end()) return;
  drifting_options_.schedule = drifting_schedule(options.schedule, calm.steps(), disturbances.drift_factor);
  drifting_ = std::make_unique<TrainingSetup>(drifting_options_);
}

}  // namespace experiments::scaler_comparison
