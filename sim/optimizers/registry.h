#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "sim/optimizers/optimizer.h"

namespace sim {

struct OptimizerRow {
  std::string_view name;
  std::string_view description;
  /// Steps are divided by the size of recent gradients, so that learning rates suit it which would suit no
  /// other.
  bool normalises_gradients;
  std::unique_ptr<Optimizer> (*make)(const names::GivenOptions& options, const UpdateArithmetic& arithmetic);
};

/// All optimizers, in the order in which they are listed.
std::span<const OptimizerRow> optimizers();

/// Throws std::invalid_argument for an unknown one.
const OptimizerRow& find_optimizer(std::string_view name);

/// An optimizer by name, with its defaults where no option is given: make_optimizer("adam",
/// {{"learning_rate", 1e-4}}). Throws std::invalid_argument for an unknown optimizer or option, a value that
/// is not allowed, or impossible arithmetic.
std::unique_ptr<Optimizer> make_optimizer(std::string_view name, const names::GivenOptions& options = {},
                                          const UpdateArithmetic& arithmetic = {});

}  // namespace sim
