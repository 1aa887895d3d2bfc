#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "sim/options.h"

namespace sim {

/// Changes weights by their gradients. Weights, gradients and state are binary32; weights stored in another
/// format are decoded before update() and rounded once after it. Every binary32 operation rounds once, in the
/// order the rule states.
///
/// A step is one begin_step() followed by one update() per parameter. Parameters are told apart by their
/// index; their state is allocated, as zeros, at their first update.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  virtual std::string_view name() const = 0;

  /// Once per applied step, before its updates; a skipped step is not begun.
  virtual void begin_step() = 0;

  /// Updates the weights of one parameter in place.
  /// Throws std::invalid_argument when sizes differ from the gradients' or from the parameter's earlier
  /// updates.
  virtual void update(std::size_t parameter, std::span<float> weights, std::span<const float> gradients) = 0;

  /// State held per weight, in bytes; master weights not counted.
  virtual std::size_t state_bytes_per_weight() const = 0;

  /// Options in force, for the manifest.
  virtual NamedValues options() const = 0;
};

}  // namespace sim
