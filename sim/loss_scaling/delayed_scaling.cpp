#include "sim/loss_scaling/delayed_scaling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace sim {

float DelayedScaling::scale(std::string_view tensor, const fp16::Format& format, float max_abs) {
  const auto known = tensors_.find(tensor);
  TensorState& state = known != tensors_.end() ? known->second : tensors_[std::string(tensor)];
  state.head.format_max = static_cast<float>(format.max());
  state.head.amax = std::fmax(state.head.amax, max_abs);  // drops NaNs
  return state.head.scale;
}

std::vector<float> DelayedScaling::step_maxima() const {
  std::vector<float> maxima;
  for (const auto& [name, tensor] : tensors_) maxima.push_back(tensor.head.amax);
  return maxima;
}

void DelayedScaling::set_step_maxima(std::span<const float> maxima) {
  auto next = maxima.begin();
  for (auto& [name, tensor] : tensors_) tensor.head.amax = *next++;
}

void DelayedScaling::end_step() {
  for (auto& [name, tensor] : tensors_) roll(tensor);
}

void DelayedScaling::roll(TensorState& tensor) const {
  auto& [head, history] = tensor;
  if (head.amax == 0 && !options_.rolls_zero_amax) return;
  history.push_back(std::exchange(head.amax, 0.0f));
  const float amax = options_.use_most_recent ? history.back() : std::ranges::max(history);
  if (history.size() >= static_cast<std::size_t>(options_.amax_history_length)) history.pop_front();
  if (amax == 0 || std::isinf(amax)) return;
  const float scaled_max = std::ldexp(head.format_max, -options_.margin);
  head.scale = std::min(scaled_max / amax, std::numeric_limits<float>::max());
}

names::NamedValues DelayedScaling::state() const {
  names::NamedValues state;
  for (const auto& [name, tensor] : tensors_) {
    append_keyed(state, name, names::named_values(tensor.head));
    for (std::size_t i = 0; i < tensor.history.size(); ++i) {
      append_keyed(state, name, {{"history_" + std::to_string(i), tensor.history[i]}});
    }
  }
  return state;
}

void DelayedScaling::restore(const names::NamedValues& state) {
  KeyedStates<TensorState> tensors;
  for (const auto& [name, values] : by_key(Options::subject, state)) {
    tensors[name] = state_from_values(values);
  }
  tensors_ = std::move(tensors);
}

DelayedScaling::TensorState DelayedScaling::state_from_values(const names::NamedValues& values) const {
  const auto history_begin =
      std::ranges::find_if(values, [](const auto& entry) { return entry.first.starts_with("history_"); });
  TensorState tensor{.head = names::state_from<Head>({values.begin(), history_begin}), .history = {}};
  const auto length = static_cast<std::size_t>(values.end() - history_begin);
  const auto allowed = static_cast<std::size_t>(options_.amax_history_length) - 1;
  if (length > allowed) {
    throw std::invalid_argument(std::string(Options::subject) + ": saved state has a history of " +
                                std::to_string(length) + " steps; allowed: at most " +
                                std::to_string(allowed));
  }
  for (auto entry = history_begin; entry != values.end(); ++entry) {
    const std::string expected = "history_" + std::to_string(tensor.history.size());
    if (entry->first != expected) {
      throw std::invalid_argument(std::string(Options::subject) + ": saved state has '" + entry->first +
                                  "' in place of '" + expected + "'");
    }
    tensor.history.push_back(
        names::checked_option<float>(Options::subject, entry->first, entry->second, amax_interval()));
  }
  return tensor;
}

}  // namespace sim
