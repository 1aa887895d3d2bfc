#include "sim/trainer/model_state.h"

#include <algorithm>
#include <utility>

namespace sim {

std::vector<const Tensor*> pointers_to(std::span<const Tensor> tensors) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

ModelState ModelState::initial(const Model& model, std::uint64_t seed,
                               const std::optional<UnitScaling>& unit_scaling) {
  ModelState state{.specs = model.parameters(), .weights = {}, .buffers = {}, .unit_scaling = unit_scaling};
  for (ParameterSpec& spec : state.specs) {
    if (!unit_scaling || spec.initialisation.kind == Initialisation::Kind::constant) continue;
    spec.initialisation = spec.shape.size() == 1
                              ? Initialisation::constant(0)
                              : Initialisation::normal(UnitScaling::weight_standard_deviation);
  }
  state.weights = initial_values(state.specs, seed);
  const std::vector<ParameterSpec> buffers = model.buffers();
  std::vector<Tensor> values = initial_values(buffers, seed);
  for (std::size_t i = 0; i < buffers.size(); ++i)
    state.buffers.emplace(buffers[i].name, std::move(values[i]));
  return state;
}

RecordedStep record_step(const Model& model, std::span<const ParameterSpec> specs,
                         std::span<const Tensor* const> weights, Buffers& buffers, const Batch& batch,
                         const PrecisionPolicy& policy, const TapeOptions& options) {
  Tape tape(policy, options);
  ForwardContext context(tape, specs, weights, buffers, batch);
  ForwardPass forward = model.forward(context);
  return {std::move(tape), std::move(forward)};
}

RecordedStep record_step(const Model& model, const ModelState& state, const Batch& batch,
                         const PrecisionPolicy& policy, TapeOptions options) {
  std::vector<Tensor> weights;
  for (std::size_t i = 0; i < state.weights.size(); ++i)
    weights.push_back(rounded(state.weights[i], model_format(policy, state.specs[i])));
  auto buffers = std::make_unique<Buffers>(state.buffers);
  options.unit_scaling = state.parametrisation();
  RecordedStep step = record_step(model, state.specs, pointers_to(weights), *buffers, batch, policy, options);
  step.weights = std::move(weights);
  step.buffers = std::move(buffers);
  return step;
}

Evaluation evaluate(const Model& model, const Dataset& dataset, const ModelState& state, int threads) {
  constexpr std::size_t chunk = 100;
  std::vector<Tensor> weights;
  for (const Tensor& tensor : state.weights) weights.push_back(rounded(tensor, fp16::binary32));
  Buffers buffers = state.buffers;
  double loss = 0;
  Score total;
  for (std::size_t first = 0; first < dataset.test_size(); first += chunk) {
    const Batch batch = dataset.test_batch(first, std::min(chunk, dataset.test_size() - first));
    const RecordedStep step =
        record_step(model, state.specs, pointers_to(weights), buffers, batch, find_precision_policy("fp32"),
                    {.training = false, .threads = threads, .unit_scaling = state.parametrisation()});
    loss += step.tape.value(step.forward.loss).element(0) * static_cast<double>(batch.size);
    const Score score = model.score(step.tape, step.forward, batch);
    total.correct += score.correct;
    total.predictions += score.predictions;
  }
  return {.loss = loss / static_cast<double>(dataset.test_size()), .accuracy = total.accuracy()};
}

}  // namespace sim
