#pragma once

#include <limits>
#include <map>
#include <string>

#include "sim/loss_scaling/keyed_state.h"
#include "sim/loss_scaling/layer_scaler.h"

namespace sim {

struct FairscaleLayerwiseOptions {
  double init_scale = 1;  ///< of each layer, unless a list of layers is given
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int growth_interval = 10000;  ///< clean steps of a layer before its scale grows
  double min_scale = std::numeric_limits<float>::min();
  double max_scale = std::numeric_limits<float>::max();
  /// The original's fault: whether a layer is unscaled hangs on the step BEFORE, so that the step after an
  /// overflow takes the layer's gradients with their scale still on them.
  bool stale_check = false;

  static constexpr std::string_view subject = "scaler 'fairscale_layerwise'";
  static void visit(auto& self, auto&& field) {
    field("init_scale", self.init_scale, names::Interval{.lower = 0});
    field("growth_factor", self.growth_factor, names::Interval{.lower = 1});
    field("backoff_factor", self.backoff_factor, names::Interval{.lower = 0, .upper = 1});
    field("growth_interval", self.growth_interval,
          names::closed_interval(1, std::numeric_limits<int>::max()));
    field("min_scale", self.min_scale, names::Interval{.lower = 0});
    field("max_scale", self.max_scale, names::Interval{.lower = 0});
    field("stale_check", self.stale_check, names::closed_interval(0, 1));
  }
};

/// fairscale's LayerwiseGradientScaler: each layer i has a scale S_i of its own, and gradients cross from
/// layer to layer times S_i / S_(i+1), so that at layer i they carry exactly S_i.
///   layer with a non-finite weight gradient: S_i <- S_i * backoff_factor; its count restarts.
///   clean layer: after growth_interval clean steps S_i <- S_i * growth_factor; its count restarts.
///   any layer not clean: the step is skipped; the clean layers count all the same.
/// Scales stay within min_scale .. max_scale, by default the normal numbers of binary32; they are doubles.
///
/// The original does not scale the gradient that reaches the LAST layer, so that all are wrong by its scale
/// unless that is 1 or the loss was multiplied by it; here the loss end is scaled like the others. Where
/// branches meet it adds them as they are; here they are brought to one scale first.
///
/// Source: facebookresearch/fairscale fairscale/optim/layerwise_gradient_scaler.py.
class FairscaleLayerwise final : public LayerScaler {
 public:
  using Options = FairscaleLayerwiseOptions;
  using ScaleByLayer = std::map<std::string, double, std::less<>>;

  /// `listed`: the layers to be scaled and their first scales; all others keep the scale 1 for ever. If it is
  /// empty every layer is scaled, from init_scale on. Throws std::invalid_argument for an option outside its
  /// interval, min_scale > max_scale, or a listed scale that is not positive and finite.
  explicit FairscaleLayerwise(const Options& options = {}, ScaleByLayer listed = {});

  std::string_view name() const override { return "fairscale_layerwise"; }
  LayerScale scale(std::string_view layer, const LayerGradient& gradient) override;
  Decision update(std::span<const LayerOutcome> layers) override;
  names::NamedValues options() const override { return names::named_values(options_); }
  names::NamedValues state() const override;
  void restore(const names::NamedValues& state) override;

 private:
  struct LayerState {
    double scale = 1;
    int growth_tracker = 0;
    bool found_nonfinite = false;  // in the last step

    static constexpr std::string_view subject = Options::subject;
    static void visit(auto& self, auto&& field) {
      field("scale", self.scale, names::Interval{.lower = 0});
      field("growth_tracker", self.growth_tracker, names::Interval{.lower = 0, .includes_lower = true});
      field("found_nonfinite", self.found_nonfinite, names::closed_interval(0, 1));
    }
  };

  bool is_scaled(std::string_view layer) const { return listed_.empty() || listed_.contains(layer); }
  LayerState& state_of(std::string_view layer);
  void update_scale(std::string_view layer, bool found_nonfinite);

  Options options_;
  ScaleByLayer listed_;
  KeyedStates<LayerState> layers_;
};

}  // namespace sim
