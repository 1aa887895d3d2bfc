#pragma once
/// Tensors of weights and gradients from values and back, and how they are updated.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/optimizers/optimizer.h"
#include "sim/tensor/tensor.h"

namespace test {

inline constexpr sim::UpdateArithmetic fused_half{.state = fp16::binary16};
inline constexpr sim::UpdateArithmetic pure_half{.operations = fp16::binary16, .state = fp16::binary16};

/// One dimension; the values are rounded once to the format.
inline sim::Tensor tensor_of(const std::vector<double>& values, fp16::Format format = fp16::binary32) {
  sim::Tensor tensor({values.size()}, format);
  sim::store({&tensor}, 0, std::span<const double>(values));
  return tensor;
}

inline std::vector<double> values_of(const sim::Tensor& tensor) {
  std::vector<double> buffer(tensor.size());
  const double* values = sim::read(tensor, 0, tensor.size(), std::span(buffer));
  return {values, values + tensor.size()};
}

/// The elements as bits, which compare NaNs too.
inline std::vector<std::uint64_t> bits_of(const sim::Tensor& tensor) {
  std::vector<std::uint64_t> bits;
  for (const double value : values_of(tensor)) bits.push_back(std::bit_cast<std::uint64_t>(value));
  return bits;
}

/// A step of parameter 0, with the optimizer's own learning rate.
inline sim::UpdateCounts step(sim::Optimizer& optimizer, sim::Tensor& weights, const sim::Tensor& gradients) {
  optimizer.begin_step();
  return optimizer.update(0, weights, gradients);
}

/// The weight after each step from `first` under five gradients; gradients are binary32 values.
inline std::vector<double> follow(sim::Optimizer& optimizer, double first,
                                  fp16::Format format = fp16::binary32) {
  sim::Tensor weight = tensor_of({first}, format);
  std::vector<double> weights;
  for (const float gradient : {-1.18f, 0.53f, 2.29f, 2.08f, 0.03f}) {
    step(optimizer, weight, tensor_of({gradient}));
    weights.push_back(values_of(weight).front());
  }
  return weights;
}

}  // namespace test
