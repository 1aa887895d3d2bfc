#include "sim/trainer.h"

#include <algorithm>
#include <utility>

namespace sim {
namespace {

/// `tensor` rounded once to `format`.
Tensor rounded(const Tensor& tensor, fp16::Format format) {
  Tensor result(tensor.shape(), format);
  copy_rounded({&result}, tensor);
  return result;
}

std::size_t count_correct(const Tensor& logits, const Batch& batch) {
  const std::vector<float> values = logits.to_floats();
  const std::size_t classes = values.size() / batch.size;
  std::size_t correct = 0;
  for (std::size_t row = 0; row < batch.size; ++row) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(row * classes);
    correct +=
        std::max_element(first, first + static_cast<std::ptrdiff_t>(classes)) - first == batch.labels[row];
  }
  return correct;
}

}  // namespace

RecordedStep record_step(const Model& model, std::span<const ParameterSpec> parameters,
                         const std::vector<Tensor>& weights, const Batch& batch,
                         const PrecisionPolicy& policy) {
  Tape tape(policy);
  std::vector<Variable> variables;
  for (std::size_t i = 0; i < weights.size(); ++i)
    variables.push_back(tape.parameter(parameters[i].name, weights[i]));
  const ForwardPass forward = model.forward(tape, variables, batch);
  return {std::move(tape), forward};
}

Evaluation evaluate(const Model& model, const Dataset& dataset, const std::vector<Tensor>& weights) {
  constexpr std::size_t chunk = 500;
  const std::vector<ParameterSpec> parameters = model.parameters();
  double loss = 0;
  std::size_t correct = 0;
  std::vector<Tensor> fp32_weights;
  for (const Tensor& tensor : weights) fp32_weights.push_back(rounded(tensor, fp16::binary32));
  for (std::size_t first = 0; first < dataset.test_size(); first += chunk) {
    const Batch batch = dataset.test_batch(first, std::min(chunk, dataset.test_size() - first));
    const auto [tape, forward] =
        record_step(model, parameters, fp32_weights, batch, find_precision_policy("fp32"));
    loss += tape.value(forward.loss).element(0) * static_cast<double>(batch.size);
    if (model.is_classifier()) correct += count_correct(tape.value(forward.outputs), batch);
  }
  const double size = static_cast<double>(dataset.test_size());
  return {.loss = loss / size, .accuracy = static_cast<double>(correct) / size};
}

Trainer::Trainer(const Model& model, const Dataset& dataset, const PrecisionPolicy& policy,
                 std::unique_ptr<LossScaler> scaler, std::unique_ptr<Optimizer> optimizer,
                 const TrainerOptions& options)
    : model_(model),
      policy_(policy),
      scaler_(std::move(scaler)),
      optimizer_(std::move(optimizer)),
      options_(options),
      batches_(dataset, options.seed, options.batch),
      parameters_(model.parameters()) {
  for (const Tensor& initial : initial_weights(parameters_, options.seed)) {
    weights_.push_back(rounded(initial, policy.weights));
  }
}

StepRecord Trainer::step() {
  const bool measured = options_.twin_every != 0 && steps_done_ % options_.twin_every == 0;
  const float scale = scaler_->scale();
  const auto [tape, forward] = record_step(model_, parameters_, weights_, next_batch(), policy_);
  StepRecord record{.step = steps_done_++,
                    .loss = static_cast<float>(tape.value(forward.loss).element(0)),
                    .scale = scale,
                    .skipped = false,
                    .twin = {}};
  sites_ = tape.sites();

  const ScaledGradients scaled{
      .sites = tape.sites(),
      .values = tape.backward(forward.loss, {.seed = scale, .twin = nullptr, .count_rounding = measured}),
      .scale = scale};
  if (measured) {
    const SiteGradients twin = tape.backward(
        forward.loss, {.seed = 1, .twin = &find_precision_policy("fp32"), .count_rounding = false});
    record.twin = compare_sites(scaled.values, scale, twin);
  }

  ExponentHistogram exponents;
  const GradientSummary summary = summarise(scaled, scaler_->needs_exponents() ? &exponents : nullptr);
  record.skipped = scaler_->update(summary) == Decision::skip;
  if (!record.skipped) apply(unscale(scaled));
  return record;
}

void Trainer::apply(const Gradients& gradients) {
  optimizer_->begin_step();
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const std::span<const float> gradient = gradients.parameters[i].elements<float>();
    if (policy_.weights == fp16::binary32) {
      optimizer_->update(i, weights_[i].elements<float>(), gradient);
    } else {  // the update is computed in FP32 from the stored weight, then rounded once into it
      std::vector<float> updated = weights_[i].to_floats();
      optimizer_->update(i, updated, gradient);
      store({&weights_[i]}, 0, updated);
    }
  }
}

}  // namespace sim
