#include "sim/loss_scaling/fairscale_layerwise.h"

#include <algorithm>
#include <utility>

namespace sim {

FairscaleLayerwise::FairscaleLayerwise(const Options& options, ScaleByLayer listed)
    : options_(names::checked(options)), listed_(std::move(listed)) {
  if (options.min_scale > options.max_scale) {
    throw names::OptionError(Options::subject, "min_scale", options.min_scale,
                             "at most max_scale = " + names::number_text(options.max_scale));
  }
  for (const auto& [layer, scale] : listed_) {
    names::checked_option<double>(Options::subject, "scale of layer '" + layer + "'", scale,
                                  names::Interval{.lower = 0});
  }
}

FairscaleLayerwise::LayerState& FairscaleLayerwise::state_of(std::string_view layer) {
  const auto known = layers_.find(layer);
  if (known != layers_.end()) return known->second;
  const auto listed = listed_.find(layer);
  const double scale = listed != listed_.end() ? listed->second : listed_.empty() ? options_.init_scale : 1;
  return layers_.emplace(layer, LayerState{.scale = scale}).first->second;
}

LayerScale FairscaleLayerwise::scale(std::string_view layer, const LayerGradient& gradient) {
  const LayerState& state = state_of(layer);
  const bool stays_scaled = options_.stale_check && state.found_nonfinite;
  return {.factor = state.scale / gradient.scale,
          .applies_to_weights = true,
          .divisor = stays_scaled ? 1 : state.scale};
}

Decision FairscaleLayerwise::update(std::span<const LayerOutcome> layers) {
  for (const LayerOutcome& outcome : layers) update_scale(outcome.layer, outcome.found_nonfinite);
  return std::ranges::any_of(layers, &LayerOutcome::found_nonfinite) ? Decision::skip : Decision::apply;
}

void FairscaleLayerwise::update_scale(std::string_view layer, bool found_nonfinite) {
  LayerState& state = state_of(layer);
  state.found_nonfinite = found_nonfinite;
  if (!is_scaled(layer)) return;
  const bool grows = !found_nonfinite && ++state.growth_tracker == options_.growth_interval;
  if (!found_nonfinite && !grows) return;
  state.scale = std::clamp(state.scale * (grows ? options_.growth_factor : options_.backoff_factor),
                           options_.min_scale, options_.max_scale);
  state.growth_tracker = 0;
}

names::NamedValues FairscaleLayerwise::state() const {
  return keyed_values(layers_);
}

void FairscaleLayerwise::restore(const names::NamedValues& state) {
  layers_ = keyed_states_from<LayerState>(state);
}

}  // namespace sim
