#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "sim/loss_scaling/loss_scaler.h"

namespace sim {

struct ScalerRow {
  std::string_view name;
  std::string_view description;
  std::unique_ptr<LossScaler> (*make)(const GivenOptions& options);
};

/// All loss scalers, in the order in which they are listed.
std::span<const ScalerRow> scalers();

/// A scaler by name, with its defaults where no option is given: make_scaler("dynamic", {{"growth_interval",
/// 20}}). Throws std::invalid_argument for an unknown scaler or option, or a value that is not allowed.
std::unique_ptr<LossScaler> make_scaler(std::string_view name, const GivenOptions& options = {});

}  // namespace sim
