#pragma once
/// Layer-wise loss scalers: instead of one factor for the whole loss, a factor for each layer, applied while
/// the backward pass goes through it.

#include <cstddef>
#include <span>
#include <string_view>

#include "sim/loss_scaling/loss_scaler.h"

namespace sim {

/// Statistics of a tensor's elements. Those of an empty tensor and those not asked for are 0.
struct TensorStatistics {
  double mean = 0;
  double standard_deviation = 0;  ///< of all n elements, divided by n
  /// Mean of ln|x| over the elements that are not zero.
  double log_mean = 0;
  double log_standard_deviation = 0;
  float min_abs = 0;  ///< smallest magnitude that is not zero; 0 if there is none
  float max_abs = 0;
};

/// What a layer scaler may know of the gradient delta that arrives at a layer's output. All of it is of the
/// values as they are stored, with the scale on them.
struct LayerGradient {
  double scale = 1;  ///< P, the product of the loss scale and all factors on the way from the loss
  TensorStatistics gradient = {};
  TensorStatistics weights = {};
  /// Smallest and largest non-zero magnitude of the products delta_ik * w_kj that the gradient of the layer's
  /// input is the sum of; 0 when all of them are zero.
  float min_abs_product = 0;
  float max_abs_product = 0;
  /// How many such products make up one element: out_features, or out_channels * kernel area.
  std::size_t fan_out = 1;
};

/// Which statistics a layer scaler reads, so that no others need be measured.
struct LayerNeeds {
  bool moments = false;      ///< gradient: mean, standard_deviation
  bool log_moments = false;  ///< gradient: log_mean, log_standard_deviation
  bool magnitudes = false;   ///< gradient: min_abs, max_abs
  bool weights = false;      ///< the same of the weights, and fan_out
  bool products = false;     ///< min_abs_product, max_abs_product, fan_out

  friend constexpr bool operator==(const LayerNeeds&, const LayerNeeds&) = default;
};

/// What to do at a layer. Its own weight gradient is formed from the gradient after it was multiplied where
/// `applies_to_weights`, else from the one that arrived, and is then divided by `divisor`.
struct LayerScale {
  double factor = 1;  ///< the gradient is multiplied by it before it goes on to the layer's input
  bool applies_to_weights = false;
  double divisor = 1;

  friend constexpr bool operator==(const LayerScale&, const LayerScale&) = default;
};

struct LayerOutcome {
  std::string_view layer;
  bool found_nonfinite = false;  ///< in one of the layer's weight gradients, in any backward pass of the step
};

/// The gradient of one of the branches that meet where a tensor was used more than once.
struct BranchGradient {
  double scale = 1;   ///< P of this branch
  float max_abs = 0;  ///< of its values as stored, with that scale on them
};

/// The scale to which the branches of a fork are brought before they are added: the largest of theirs at
/// which the largest unscaled magnitude, max_abs / scale, stays below `limit`; if none does, the smallest
/// halved until it does, but not once it is below 1/8 (where the original then stops with an error). Throws
/// std::invalid_argument when there is no branch.
///
/// Source: R. Zhao, B. Vogel, T. Ahmed, "Adaptive Loss Scaling for Mixed Precision Training",
/// arXiv:1910.12385, 2019; its code ("rescaling"), kumasento/gradient-scaling.
double joined_scale(std::span<const BranchGradient> branches, double limit);

/// Chooses a factor for each layer. A state machine without tensors. A backward pass starts from the loss
/// times loss_scale(), calls scale() once at each layer, from the loss towards the inputs, and keeps P: after a
/// layer it is factor * P. After the backward passes of a step, one for each micro-batch, comes one update().
class LayerScaler {
 public:
  virtual ~LayerScaler() = default;

  virtual std::string_view name() const = 0;

  /// P at the loss.
  virtual double loss_scale() const { return 1; }

  virtual LayerNeeds needs() const { return {}; }

  virtual LayerScale scale(std::string_view layer, const LayerGradient& gradient) = 0;

  /// P of the sum where branches meet.
  virtual double joined(std::span<const BranchGradient> branches) const {
    constexpr double largest_half = 65504;
    return joined_scale(branches, largest_half);
  }

  /// Ends the step: whether the optimizer may use its gradients.
  virtual Decision update(std::span<const LayerOutcome> layers) = 0;

  /// Options in force, for the manifest.
  virtual names::NamedValues options() const = 0;

  /// All that the next step depends on besides the options, as "LAYER/entry". A scaler of the same options
  /// that restores it continues exactly as this one would.
  virtual names::NamedValues state() const = 0;

  /// Throws std::invalid_argument when the entries are not those of state() or a value is impossible.
  virtual void restore(const names::NamedValues& state) = 0;
};

}  // namespace sim
