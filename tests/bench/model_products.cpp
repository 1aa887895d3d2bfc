#include "tests/bench/model_products.h"

#include <stdexcept>
#include <string_view>

#include "sim/ops/attention_context.h"
#include "sim/ops/attention_scores.h"
#include "sim/trainer/trainer.h"

namespace bench {
namespace {

using sim::GradientSite, sim::Tape, sim::Variable;

/// Elements of the layer's matrices or kernels.
std::size_t weights_of(const Tape& tape, const GradientSite& layer) {
  std::size_t elements = 0;
  for (const GradientSite& site : tape.sites()) {
    if (site.kind != GradientSite::Kind::weight || !site.name.starts_with(layer.name + ".")) continue;
    const sim::Tensor& parameter = tape.value(site.variable);
    if (parameter.shape().size() > 1) elements += parameter.size();
  }
  if (elements == 0) throw std::logic_error("the products of layer '" + layer.name + "' cannot be counted");
  return elements;
}

bool is_operation_on_parameters(const sim::ValueName& name) {
  return name.operation != "parameter" && name.operation != "input" && !name.layer.empty();
}

bool has_data_gradient(const Tape& tape, const GradientSite& layer) {
  for (std::size_t i = 0; i < layer.variable.index; ++i) {
    if (is_operation_on_parameters(tape.name_of(Variable{i}))) return true;
  }
  return false;
}

/// Every weight meets every position: a row, or a pixel of the output.
double products_of_layer(const Tape& tape, const GradientSite& layer) {
  const sim::Tensor& output = tape.value(layer.variable);
  const std::size_t positions = output.size() / output.shape()[1];
  const int passes = has_data_gradient(tape, layer) ? 3 : 2;
  return passes * static_cast<double>(positions) * static_cast<double>(weights_of(tape, layer));
}

/// q k^T and its product with v take the same number: each token's width times the tokens it looks at. Both
/// have two factors to differentiate for.
double products_of_attention(const Tape& tape, Variable last) {
  double products = 0;
  std::size_t context = 0;
  for (std::size_t i = 0; i < last.index; ++i) {
    const std::string_view operation = tape.name_of(Variable{i}).operation;
    const sim::Tensor& output = tape.value(Variable{i});
    if (operation == sim::attention_scores.name) context = output.shape().back();
    if (operation == sim::attention_context.name)
      products += 2 * 3 * static_cast<double>(output.size()) * static_cast<double>(context);
  }
  return products;
}

}  // namespace

double products_of_step(const sim::Model& model, const sim::Batch& batch) {
  const sim::RecordedStep step =
      sim::record_step(model, sim::ModelState::initial(model, 0), batch, sim::find_precision_policy("fp32"));
  double products = products_of_attention(step.tape, step.forward.loss);
  for (const GradientSite& site : step.tape.sites()) {
    if (site.kind == GradientSite::Kind::activation) products += products_of_layer(step.tape, site);
  }
  return products;
}

}  // namespace bench
