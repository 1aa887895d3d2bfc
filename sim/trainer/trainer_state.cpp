/// What a trainer goes on from.

#include <algorithm>
#include <stdexcept>

#include "sim/tensor/tensor_contents.h"
#include "sim/trainer/trainer.h"

namespace sim {
namespace {

struct NamedTensor {
  std::string name;
  Tensor* tensor;
};

/// Weights and buffers, their names with shape and format.
std::vector<NamedTensor> tensors_of(ModelState& state) {
  std::vector<NamedTensor> tensors;
  const auto add = [&tensors](const std::string& name, Tensor& tensor) {
    tensors.push_back(
        {name + ' ' + to_string(tensor.shape()) + ' ' + std::string(fp16::name_of(tensor.format())),
         &tensor});
  };
  for (std::size_t i = 0; i < state.weights.size(); ++i) add(state.specs[i].name, state.weights[i]);
  for (auto& [name, buffer] : state.buffers) add(name, buffer);
  return tensors;
}

template <class Scaler>
names::NamedValues state_of(const std::unique_ptr<Scaler>& scaler) {
  return scaler ? scaler->state() : names::NamedValues();
}

template <class Scaler>
void restore_scaler(const std::unique_ptr<Scaler>& scaler, std::string_view kind,
                    const names::NamedValues& saved) {
  if (scaler) return scaler->restore(saved);
  if (saved.empty()) return;
  throw std::invalid_argument("trainer: saved state is of a run with a " + std::string(kind) +
                              " scaler, which this one has not");
}

}  // namespace

TrainerState Trainer::save() {
  TrainerState saved{.steps_done = steps_done_,
                     .steps_applied = steps_applied_,
                     .layer_scaler = state_of(layer_),
                     .tensor_scaler = state_of(tensor_)};
  for (const auto& scaler : loss_scalers_) saved.loss_scalers.push_back(scaler->state());
  const auto add = [&saved](const std::string& name, std::span<const std::byte> bytes) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
    saved.arrays.push_back({name, {first, first + bytes.size()}});
  };
  for (const auto& [name, tensor] : tensors_of(state_)) add(name, bytes_of(*tensor));
  for (const auto& [name, bytes] : optimizer_->state()) add(name, bytes);
  return saved;
}

void Trainer::restore(const TrainerState& saved) {
  const std::vector<NamedTensor> tensors = tensors_of(state_);
  std::vector<StateBlock> arrays;
  for (const auto& [name, bytes] : saved.arrays) arrays.push_back({name, std::as_bytes(std::span(bytes))});
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string found = i < arrays.size() ? arrays[i].name : "nothing";
    if (found == tensors[i].name && arrays[i].bytes.size() == tensors[i].tensor->size_bytes()) continue;
    throw std::invalid_argument("trainer: saved state has '" + found + "' in place of '" + tensors[i].name +
                                "'");
  }
  optimizer_->restore(std::span(arrays).subspan(tensors.size()));
  if (saved.loss_scalers.size() != loss_scalers_.size()) {
    throw std::invalid_argument("trainer: saved state has " + std::to_string(saved.loss_scalers.size()) +
                                " loss scalers in place of " + std::to_string(loss_scalers_.size()));
  }
  for (std::size_t i = 0; i < loss_scalers_.size(); ++i) loss_scalers_[i]->restore(saved.loss_scalers[i]);
  restore_scaler(layer_, "layer", saved.layer_scaler);
  restore_scaler(tensor_, "tensor", saved.tensor_scaler);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    std::ranges::copy(arrays[i].bytes, bytes_of(*tensors[i].tensor).begin());
  steps_done_ = saved.steps_done;
  steps_applied_ = saved.steps_applied;
  round_copies();
}

}  // namespace sim
