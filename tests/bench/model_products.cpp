#include "tests/bench/model_products.h"

#include <stdexcept>
#include <string_view>

#include "sim/ops/attention_context.h"
#include "sim/ops/attention_scores.h"
#include "sim/trainer/trainer.h"

namespace bench {
namespace {

using sim::GradientSite, sim::Tape, sim::Variable;
using enum ProductShape::Transposed;

bool is_operation_on_parameters(const sim::ValueName& name) {
  return name.operation != "parameter" && name.operation != "input" && !name.layer.empty();
}

bool has_data_gradient(const Tape& tape, const GradientSite& layer) {
  for (std::size_t i = 0; i < layer.variable.index; ++i) {
    if (is_operation_on_parameters(tape.name_of(Variable{i}))) return true;
  }
  return false;
}

/// Every weight of the layer's matrices or kernels meets every position: a row, or a pixel of the output.
void add_layer(std::vector<ProductShape>& shapes, const Tape& tape, const GradientSite& layer) {
  const sim::Tensor& output = tape.value(layer.variable);
  const std::size_t positions = output.size() / output.shape()[1], before = shapes.size();
  for (const GradientSite& site : tape.sites()) {
    if (site.kind != GradientSite::Kind::weight || !site.name.starts_with(layer.name + ".")) continue;
    const sim::Tensor& parameter = tape.value(site.variable);
    if (parameter.shape().size() < 2) continue;
    const std::size_t out = parameter.shape()[0], in = parameter.size() / out;
    shapes.push_back({positions, in, out, second});
    shapes.push_back({out, positions, in, first});
    if (has_data_gradient(tape, layer)) shapes.push_back({positions, out, in});
  }
  if (shapes.size() == before)
    throw std::logic_error("the products of layer '" + layer.name + "' cannot be counted");
}

/// Scores and context of the heads: q k^T and p v, each with two factors to differentiate for.
void add_attention(std::vector<ProductShape>& shapes, const Tape& tape, Variable last) {
  std::size_t heads = 0, context = 0;
  for (std::size_t i = 0; i < last.index; ++i) {
    const std::string_view operation = tape.name_of(Variable{i}).operation;
    const sim::Tensor& output = tape.value(Variable{i});
    if (operation == sim::attention_scores.name) {
      heads = output.shape().front();
      context = output.shape().back();
    }
    if (operation != sim::attention_context.name) continue;
    const std::size_t depth = output.size() / (heads * context);
    for (const ProductShape& scores :
         {ProductShape{context, depth, context, second}, ProductShape{context, context, depth},
          ProductShape{context, context, depth, first}}) {
      shapes.push_back(scores);
      shapes.back().times = 2 * heads;  // once with the scores, once with the context
    }
  }
}

}  // namespace

std::vector<ProductShape> product_shapes(const sim::Model& model, const sim::Batch& batch) {
  const sim::RecordedStep step =
      sim::record_step(model, sim::ModelState::initial(model, 0), batch, sim::find_precision_policy("fp32"));
  std::vector<ProductShape> shapes;
  add_attention(shapes, step.tape, step.forward.loss);
  for (const GradientSite& site : step.tape.sites()) {
    if (site.kind == GradientSite::Kind::activation) add_layer(shapes, step.tape, site);
  }
  return shapes;
}

double products_of(const std::vector<ProductShape>& shapes) {
  double products = 0;
  for (const ProductShape& shape : shapes) products += shape.products();
  return products;
}

}  // namespace bench
