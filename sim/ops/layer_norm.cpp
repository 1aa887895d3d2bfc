#include "sim/ops/layer_norm.h"

#include <cmath>
#include <utility>
#include <vector>

#include "sim/ops/groups.h"
#include "sim/ops/normalisation.h"

namespace sim {
namespace {

Tensor forward(OperationCall& call) {
  const Tensor &x = *call.inputs[0], &weight = *call.inputs[1], &bias = *call.inputs[2];
  const std::size_t columns = weight.size(), rows = x.size() / columns;
  const fp16::Format reductions = call.arithmetic.reductions;
  const double epsilon = checked_epsilon(layer_norm, call.options.get<LayerNormOptions>().epsilon);
  Tensor output(x.shape(), call.output_format);
  with_real(is_binary64(x), [&](auto real) {
    using Real = decltype(real);
    std::vector<Real> weight_buffer(columns), bias_buffer(columns);
    const Real* weights = read(weight, 0, columns, std::span(weight_buffer));
    const Real* biases = read(bias, 0, columns, std::span(bias_buffer));
    call.saved.assign(2, Tensor({rows}, format_of<Real>));
    const std::span<Real> means = call.saved[0].elements<Real>(), inverses = call.saved[1].elements<Real>();
    map_groups<Real>(
        call.into(output), rows, {&x}, call.arithmetic.threads,
        [&](std::size_t row, Real* y, const auto& inputs) {
          const auto [mean, sum_of_squares] = deviations_of(inputs[0], columns, reductions);
          const Real variance = rounded_to(reductions, sum_of_squares / static_cast<Real>(columns));
          const Real inverse = 1 / std::sqrt(variance + static_cast<Real>(epsilon));
          means[row] = mean;
          inverses[row] = inverse;
          apply_to_each(
              [mean = mean, inverse](Real value, Real w, Real b) { return (value - mean) * inverse * w + b; },
              columns, y, inputs[0], weights, biases);
        });
  });
  return output;
}

/// What backward reads besides x and dy.
template <class Real>
class SavedRows {
 public:
  explicit SavedRows(std::span<const Tensor> saved)
      : mean_buffer_(saved[0].size()), inverse_buffer_(saved[1].size()) {
    means = read(saved[0], 0, saved[0].size(), std::span(mean_buffer_));
    inverses = read(saved[1], 0, saved[1].size(), std::span(inverse_buffer_));
  }
  const Real *means, *inverses;

 private:
  std::vector<Real> mean_buffer_, inverse_buffer_;
};

/// dx = inverse (g - mean of g - xhat (mean of g xhat)) with g = dy weight and xhat = (x - mean) inverse; the
/// means over the row, summed in the interleaved order.
template <class Real>
void input_gradient(const OperationGradient& g, const SavedRows<Real>& saved) {
  const std::size_t columns = g.inputs[1]->size();
  const fp16::Format reductions = g.arithmetic.reductions;
  std::vector<Real> buffer(columns);
  const Real* weights = read(*g.inputs[1], 0, columns, std::span(buffer));
  map_groups<Real>(
      g.input_gradients[0], g.inputs[0]->size() / columns, {g.inputs[0], &g.output_gradient},
      g.arithmetic.threads, [&](std::size_t row, Real* dx, const auto& inputs) {
        const Real *x = inputs[0], *dy = inputs[1];
        const Real mean = saved.means[row], inverse = saved.inverses[row];
        const Real sum_g = interleaved_sum<Real>(
            reductions, [](Real gradient, Real w) { return gradient * w; }, columns, dy, weights);
        const Real sum_gx = interleaved_sum<Real>(
            reductions,
            [=](Real gradient, Real w, Real value) { return gradient * w * ((value - mean) * inverse); },
            columns, dy, weights, x);
        const Real mean_g = mean_of_sum(reductions, sum_g, columns);
        const Real mean_gx = mean_of_sum(reductions, sum_gx, columns);
        apply_to_each(
            [=](Real value, Real gradient, Real w) {
              return inverse * (gradient * w - mean_g - (value - mean) * inverse * mean_gx);
            },
            columns, dx, x, dy, weights);
      });
}

/// dweight = sum of dy xhat, dbias = sum of dy, each down its column.
template <class Real>
void parameter_gradients(const OperationGradient& g, const SavedRows<Real>& saved) {
  const std::size_t columns = g.inputs[1]->size();
  std::vector<Real> x_buffer(columns), dy_buffer(columns), terms(columns);
  ColumnSums<Real> dweight(g.arithmetic.reductions, columns), dbias(g.arithmetic.reductions, columns);
  for (std::size_t row = 0; row < g.inputs[0]->size() / columns; ++row) {
    const Real* x = read(*g.inputs[0], row * columns, columns, std::span(x_buffer));
    const Real* dy = read(g.output_gradient, row * columns, columns, std::span(dy_buffer));
    const Real mean = saved.means[row], inverse = saved.inverses[row];
    apply_to_each([=](Real gradient, Real value) { return gradient * ((value - mean) * inverse); }, columns,
                  terms.data(), dy, x);
    dweight.add_row(terms.data());
    dbias.add_row(dy);
  }
  if (g.input_gradients[1].tensor)
    store(g.input_gradients[1], 0, std::span<const Real>(std::move(dweight).totals()));
  if (g.input_gradients[2].tensor)
    store(g.input_gradients[2], 0, std::span<const Real>(std::move(dbias).totals()));
}

void backward(const OperationGradient& g) {
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    const SavedRows<decltype(real)> saved(g.saved);
    if (g.input_gradients[0].tensor) input_gradient(g, saved);
    if (g.input_gradients[1].tensor || g.input_gradients[2].tensor) parameter_gradients(g, saved);
  });
}

UnitMultipliers unit_multipliers(UnitScaledCall& call) {
  const Tensor& x = *call.inputs[0];
  return call.rule.norm(x.size() / x.shape().back());
}

}  // namespace

constinit const Operation layer_norm{
    .name = "layer_norm",
    .description = "each row to mean 0 and variance 1, then times a weight plus a bias per column",
    .casts = CastClasses{.torch_autocast = AutocastClass::full_precision,
                         .apex_o1 = AutocastClass::full_precision},
    .forward = forward,
    .backward = backward,
    .unit_multipliers = unit_multipliers};

}  // namespace sim
