#pragma once
/// What an operation is: a row of functions. The tape chooses formats and allocates; the operation computes.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "fp16/config.h"
#include "sim/precision_policy.h"
#include "sim/tensor.h"

namespace sim {

/// Settings of single operations; each reads only those it documents.
struct OperationOptions {
  std::size_t stride = 1;                 ///< conv2d
  std::size_t padding = 0;                ///< conv2d, zeros on every side
  std::size_t window = 2;                 ///< max_pool2d, also its stride
  std::vector<std::int32_t> labels = {};  ///< softmax_cross_entropy: one class index per row
  fp16::Format format = fp16::binary32;   ///< cast: the format of its output
};

/// One forward evaluation. Inputs are already in the format that the operation's class asks for.
struct OperationCall {
  std::span<const Tensor* const> inputs;
  const OperationOptions& options;
  fp16::Accumulation accumulation;
  fp16::Format output_format;
  Tensor saved;  ///< what forward wants back in backward, e.g. the probabilities of a softmax
};

/// One backward evaluation: from the gradient of the output to those of the inputs. The output gradient may
/// be wider than the forward values: the twin of a step runs the same backward in FP32 or FP64.
struct OperationGradient {
  std::span<const Tensor* const> inputs;
  const Tensor& output;
  const Tensor& saved;
  const OperationOptions& options;
  fp16::Accumulation accumulation;
  const Tensor& output_gradient;
  /// One per input, shaped like it; a null tensor where no gradient is wanted.
  std::span<const RoundedOutput> input_gradients;
};

struct Operation {
  std::string_view name;
  std::string_view description;
  AutocastClass autocast;
  /// True when the gradient of the output is counted as an activation gradient of a layer (linear maps).
  bool is_layer;
  Tensor (*forward)(OperationCall&);
  void (*backward)(const OperationGradient&);
};

/// Every operation; a new one is a file and a row in registry.cpp.
std::span<const Operation* const> operations();

extern const Operation cast;
extern const Operation matmul;
extern const Operation bias;
extern const Operation linear;
extern const Operation conv2d;
extern const Operation relu;
extern const Operation sigmoid;
extern const Operation max_pool2d;
extern const Operation softmax_cross_entropy;
extern const Operation mean_squared_error;

/// Calls body(float{}) or body(double{}): binary64 anywhere makes the computation binary64.
template <class Body>
decltype(auto) with_real(bool binary64, Body body) {
  return binary64 ? body(double{}) : body(float{});
}
inline bool is_binary64(const Tensor& tensor) {
  return tensor.format() == fp16::binary64;
}

template <class Real, class Function, class... Inputs>
FP16_VECTOR_CLONES void apply_to_each(Function function, std::size_t count, Real* results,
                                      const Inputs*... inputs) {
  for (std::size_t i = 0; i < count; ++i) results[i] = function(inputs[i]...);
}

/// out[i] = function(inputs[0][i], inputs[1][i], ...), computed in Real and rounded once.
template <class Real, std::size_t Count, class Function>
void map_elements(const RoundedOutput& out, const std::array<const Tensor*, Count>& inputs,
                  Function function) {
  constexpr std::size_t piece = 2048;
  Real results[piece];
  std::array<std::array<Real, piece>, Count> buffers;
  const std::size_t size = out.tensor->size();
  for (std::size_t offset = 0; offset < size; offset += piece) {
    const std::size_t n = std::min(piece, size - offset);
    std::array<const Real*, Count> values;
    for (std::size_t input = 0; input < Count; ++input)
      values[input] = read(*inputs[input], offset, n, buffers[input]);
    std::apply([&](auto... input) { apply_to_each(function, n, results, input...); }, values);
    store(out, offset, std::span<const Real>(results, n));
  }
}

}  // namespace sim
