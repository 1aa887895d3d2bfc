#pragma once
/// One operation, forward and backward, without a tape: formats and arithmetic are the test's.

#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fp16/half.h"
#include "sim/ops/operation.h"
#include "sim/tensor/random.h"
#include "sim/tensor/tensor.h"

/// How an evaluation computes.
struct EvaluationSetting {
  fp16::Format output = fp16::binary32;      ///< format of the output
  fp16::Format reductions = fp16::binary32;  ///< of partial sums
  int threads = 1;
  bool training = true;
};

inline constexpr EvaluationSetting pure_fp16{.output = fp16::binary16, .reductions = fp16::binary16};

/// The output of an operation and what it saved for backward.
class Evaluation {
 public:
  Evaluation(const sim::Operation& operation, std::vector<sim::Tensor> inputs,
             sim::OperationOptions options = {}, const EvaluationSetting& setting = {})
      : operation_(operation), inputs_(std::move(inputs)), options_(std::move(options)), setting_(setting) {
    const std::vector<const sim::Tensor*> pointers = input_pointers();
    const sim::Arithmetic arithmetic{.reductions = setting.reductions, .threads = setting.threads};
    sim::OperationCall call{.inputs = pointers,
                            .options = options_,
                            .arithmetic = arithmetic,
                            .output_format = setting.output,
                            .training = setting.training,
                            .random = random_};
    call.counts = &counts;
    output = operation.forward(call);
    saved = std::move(call.saved);
  }

  /// The gradients of all inputs, each in the format of its input or, for a twin, in `twin` with sums in it.
  std::vector<sim::Tensor> backward(const sim::Tensor& output_gradient,
                                    std::optional<fp16::Format> twin = {}) {
    std::vector<sim::Tensor> gradients;
    for (const sim::Tensor& input : inputs_)
      gradients.emplace_back(input.shape(), twin.value_or(input.format()));
    std::vector<sim::RoundedOutput> outputs;
    for (sim::Tensor& gradient : gradients) outputs.push_back({&gradient, twin ? nullptr : &counts});
    const sim::Arithmetic arithmetic{.reductions = twin.value_or(setting_.reductions),
                                     .threads = setting_.threads};
    operation_.backward({.inputs = input_pointers(),
                         .output = output,
                         .saved = saved,
                         .options = options_,
                         .arithmetic = arithmetic,
                         .training = setting_.training,
                         .random = random_,
                         .output_gradient = output_gradient,
                         .input_gradients = outputs});
    return gradients;
  }

  sim::Tensor output;
  std::vector<sim::Tensor> saved;
  fp16::RoundingCounts counts;  ///< of the output and of every gradient so far

 private:
  std::vector<const sim::Tensor*> input_pointers() const {
    std::vector<const sim::Tensor*> pointers;
    for (const sim::Tensor& input : inputs_) pointers.push_back(&input);
    return pointers;
  }

  const sim::Operation& operation_;
  std::vector<sim::Tensor> inputs_;
  sim::OperationOptions options_;
  EvaluationSetting setting_;
  sim::RandomStream random_{0, "evaluation"};
};

/// A tensor of `format` that holds `values`, each rounded to it.
inline sim::Tensor tensor_of(sim::Shape shape, std::span<const float> values,
                             fp16::Format format = fp16::binary32) {
  sim::Tensor tensor(std::move(shape), format);
  sim::copy_rounded({&tensor}, sim::Tensor::from(tensor.shape(), values));
  return tensor;
}
inline sim::Tensor tensor_of(sim::Shape shape, std::initializer_list<float> values,
                             fp16::Format format = fp16::binary32) {
  return tensor_of(std::move(shape), std::span(values.begin(), values.size()), format);
}

/// offset + scale * (standard normal numbers), rounded to `format`.
inline sim::Tensor normal_tensor(sim::Shape shape, std::string_view purpose,
                                 fp16::Format format = fp16::binary32, float scale = 1, float offset = 0) {
  const sim::RandomStream random(17, purpose);
  std::vector<float> values(sim::element_count(shape));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = offset + scale * random.normal(i);
  return tensor_of(std::move(shape), values, format);
}

inline std::vector<double> values_of(const sim::Tensor& tensor) {
  std::vector<double> values(tensor.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = tensor.element(i);
  return values;
}

/// Equal in shape, format and every byte.
inline bool same_bytes(const sim::Tensor& a, const sim::Tensor& b) {
  if (a.shape() != b.shape() || a.format() != b.format()) return false;
  const auto codes_equal = [&]<class Code>(Code) {
    return std::ranges::equal(a.elements<Code>(), b.elements<Code>());
  };
  switch (a.format().size_bytes()) {
    case 2:
      return codes_equal(std::uint16_t{});
    case 4:
      return codes_equal(std::uint32_t{});
    default:
      return codes_equal(std::uint64_t{});
  }
}

/// A sum in binary16 by the definition: 16 partial sums from zero, term i to number i mod 16 in ascending
/// order, then j takes up j + 8, j + 4, j + 2, j + 1; terms and partial sums are halves.
inline fp16::half interleaved_half_sum(std::span<const float> terms) {
  std::vector<fp16::half> lanes(16, fp16::half(0.0f));
  for (std::size_t i = 0; i < terms.size(); ++i) lanes[i % 16] += fp16::half(terms[i]);
  for (std::size_t distance : {8, 4, 2, 1}) {
    for (std::size_t j = 0; j < distance; ++j) lanes[j] += lanes[j + distance];
  }
  return lanes[0];
}
