#include <algorithm>
#include <cmath>
#include <vector>

#include "fp16/elementary.h"
#include "sim/ops/operation.h"

namespace sim {
namespace {

float exponential(float x) {
  return fp16::exp(x);
}
double exponential(double x) {
  return std::exp(x);
}
float logarithm(float x) {
  return fp16::log(x);
}
double logarithm(double x) {
  return std::log(x);
}

/// inputs: logits (batch x classes); options.labels. Output: the mean of -log softmax(logits)[label], a
/// scalar. Sums run over classes, then over rows, in ascending order. Saved: the softmax probabilities.
Tensor forward(OperationCall& call) {
  const Tensor& logits = *call.inputs[0];
  const std::size_t batch = logits.shape()[0], classes = logits.shape()[1];
  Tensor output({1}, call.output_format);
  call.saved = Tensor(logits.shape(), call.output_format);
  with_real(is_binary64(logits), [&](auto real) {
    using Real = decltype(real);
    std::vector<Real> buffer(classes), probabilities(classes);
    Real loss = 0;
    for (std::size_t row = 0; row < batch; ++row) {
      const Real* z = read(logits, row * classes, classes, buffer);
      const Real largest = *std::max_element(z, z + classes);
      Real sum = 0;
      for (std::size_t c = 0; c < classes; ++c) sum += probabilities[c] = exponential(z[c] - largest);
      for (Real& p : probabilities) p /= sum;
      loss += logarithm(sum) - (z[call.options.labels[row]] - largest);
      store({&call.saved}, row * classes, std::span<const Real>(probabilities));
    }
    const Real mean = loss / static_cast<Real>(batch);
    store({&output}, 0, std::span(&mean, 1));
  });
  return output;
}

/// (softmax - one_hot(label)) * (upstream / batch): exact shifts apart, the same for every power-of-two loss
/// scale.
void backward(const OperationGradient& g) {
  const std::size_t batch = g.inputs[0]->shape()[0], classes = g.inputs[0]->shape()[1];
  with_real(is_binary64(g.output_gradient), [&](auto real) {
    using Real = decltype(real);
    const Real factor = static_cast<Real>(g.output_gradient.element(0)) / static_cast<Real>(batch);
    std::vector<Real> buffer(classes), dz(classes);
    for (std::size_t row = 0; row < batch; ++row) {
      const Real* p = read(g.saved, row * classes, classes, buffer);
      for (std::size_t c = 0; c < classes; ++c) {
        const Real target = c == static_cast<std::size_t>(g.options.labels[row]) ? 1 : 0;
        dz[c] = (p[c] - target) * factor;
      }
      store(g.input_gradients[0], row * classes, std::span<const Real>(dz));
    }
  });
}

}  // namespace

constinit const Operation softmax_cross_entropy{
    .name = "softmax_cross_entropy",
    .description = "mean over the batch of -log softmax(logits)[label]",
    .autocast = AutocastClass::full_precision,
    .is_layer = false,
    .forward = forward,
    .backward = backward};

}  // namespace sim
