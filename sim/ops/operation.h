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
#include "sim/precision/arithmetic.h"
#include "sim/precision/autocast.h"
#include "sim/precision/operand_narrowing.h"
#include "sim/tensor/random.h"
#include "sim/tensor/tensor.h"

namespace sim {

/// Settings of single operations; each reads only those it documents.
struct OperationOptions {
  std::size_t stride = 1;                 ///< conv2d
  std::size_t padding = 0;                ///< conv2d, zeros on every side
  std::size_t window = 2;                 ///< pooling, also its stride
  std::vector<std::int32_t> labels = {};  ///< losses of classes: an index per row, -1 for rows left out
                                          ///< embedding: the row of the table for each output row
  std::vector<float> row_weights = {};    ///< element-wise losses: a factor per row; empty means 1
  double normaliser = 0;                  ///< losses: what the sum is divided by; 0 means the number of terms
  double beta = 1;                        ///< smooth_l1: where the square turns into the absolute value
  double exponent = 2;                    ///< pow
  double probability = 0;                 ///< dropout: of an element to become zero
  double epsilon = 1e-5;                  ///< layer_norm, batch_norm: added to the variance
  double momentum = 0.1;                  ///< batch_norm: weight of a batch in the running statistics
  Tensor* running_mean = nullptr;         ///< batch_norm: updated in training, used in evaluation
  Tensor* running_variance = nullptr;     ///< likewise
  std::size_t heads = 1;                  ///< attention
  std::size_t context = 1;                ///< attention, lstm: tokens in a sequence
  std::size_t row_length = 0;             ///< channels_last: of a row of the output; 0 means the channels
  bool causal = false;                    ///< softmax of attention scores: no row looks past its own token
  double forward_factor = 1;              ///< scale
  double backward_factor = 1;             ///< scale
  fp16::Format format = fp16::binary32;   ///< cast: the format of its output
};

/// One forward evaluation. Inputs are already in the format that the operation's class asks for.
struct OperationCall {
  std::span<const Tensor* const> inputs;
  const OperationOptions& options;
  const Arithmetic& arithmetic;
  fp16::Format output_format;
  bool training;        ///< false: evaluation (running statistics, no dropout)
  RandomStream random;  ///< this evaluation's own; backward gets the same
  /// Of linear maps; null: operands are multiplied as they are.
  const OperandNarrowing* narrowing = nullptr;
  const ElementRounding* rounding = nullptr;
  fp16::RoundingCounts* counts = nullptr;
  std::vector<Tensor> saved =
      {};  ///< what forward wants back in backward, e.g. the probabilities of a softmax

  /// An output or a saved value of this evaluation as a place to store to, each with a `use` of its own.
  RoundedOutput into(Tensor& tensor, std::uint64_t use = 0) const { return {&tensor, counts, rounding, use}; }
};

/// One backward evaluation: from the gradient of the output to those of the inputs. The output gradient may
/// be wider than the forward values: the twin of a step runs the same backward in FP32 or FP64.
struct OperationGradient {
  std::span<const Tensor* const> inputs;
  const Tensor& output;
  std::span<const Tensor> saved;
  const OperationOptions& options;
  const Arithmetic& arithmetic;
  bool training;
  RandomStream random;
  const OperandNarrowing* narrowing = nullptr;  ///< as in forward; null for a twin
  const Tensor& output_gradient;
  /// One per input, shaped like it, the input's number its `use`; a null tensor where no gradient is wanted.
  std::span<const RoundedOutput> input_gradients;
};

/// In which format an operation runs, by the list that a policy follows. `input_type` is every operation that
/// a list does not name.
struct CastClasses {
  AutocastClass torch_autocast = AutocastClass::input_type;
  AutocastClass apex_o1 = AutocastClass::input_type;
};

struct Operation {
  std::string_view name;
  std::string_view description;
  CastClasses casts = {};
  /// The gradient of the output is looked at as the activation gradient of a layer (linear maps).
  bool is_layer = false;
  /// A loss takes the model's outputs, which a policy without a cast list hands over in binary32.
  bool is_loss = false;
  /// The output has the format of the first input, however wide the others are (batch_norm's parameters).
  bool keeps_first_format = false;
  /// What `banned` names as the way out.
  std::string_view replacement = {};
  Tensor (*forward)(OperationCall&);
  void (*backward)(const OperationGradient&);
};

/// Every operation; a new one is a file, a declaration below and a row in registry.cpp.
std::span<const Operation* const> operations();

/// Throws std::invalid_argument, naming the known ones, for an unknown name.
const Operation& find_operation(std::string_view name);

extern const Operation cast;
extern const Operation matmul;
extern const Operation bias;
extern const Operation linear;
extern const Operation conv2d;
extern const Operation relu;
extern const Operation gelu;
extern const Operation tanh;
extern const Operation sigmoid;
extern const Operation exp;
extern const Operation log;
extern const Operation pow;
extern const Operation add;
extern const Operation mul;
extern const Operation scale;
extern const Operation sum;
extern const Operation mean;
extern const Operation variance;
extern const Operation softmax;
extern const Operation log_softmax;
extern const Operation attention_scores;
extern const Operation attention_context;
extern const Operation layer_norm;
extern const Operation batch_norm;
extern const Operation max_pool2d;
extern const Operation average_pool2d;
extern const Operation global_average_pool;
extern const Operation channels_last;
extern const Operation dropout;
extern const Operation embedding;
extern const Operation lstm;
extern const Operation softmax_cross_entropy;
extern const Operation mean_squared_error;
extern const Operation mean_absolute_error;
extern const Operation smooth_l1;
extern const Operation binary_cross_entropy;
extern const Operation binary_cross_entropy_with_logits;

/// Calls body(float{}) or body(double{}): binary64 anywhere makes the computation binary64.
template <class Body>
decltype(auto) with_real(bool binary64, Body body) {
  return binary64 ? body(double{}) : body(float{});
}

template <class Real, class Function, class... Inputs>
FP16_VECTOR_CLONES void apply_to_each(Function function, std::size_t count, Real* results,
                                      const Inputs*... inputs) {
  for (std::size_t i = 0; i < count; ++i) results[i] = function(inputs[i]...);
}

/// out[i] = function(inputs[0][i], inputs[1][i], ...) for first <= i < last, computed in Real and rounded
/// once.
template <class Real, std::size_t Count, class Function>
void map_part(const RoundedOutput& out, const std::array<const Tensor*, Count>& inputs, Function function,
              std::size_t first, std::size_t last) {
  constexpr std::size_t piece = 2048;
  Real results[piece];
  std::array<std::array<Real, piece>, Count> buffers;
  for (std::size_t offset = first; offset < last; offset += piece) {
    const std::size_t n = std::min(piece, last - offset);
    std::array<const Real*, Count> values;
    for (std::size_t input = 0; input < Count; ++input)
      values[input] = read(*inputs[input], offset, n, buffers[input]);
    std::apply([&](auto... input) { apply_to_each(function, n, results, input...); }, values);
    store(out, offset, std::span<const Real>(results, n));
  }
}

/// The same for all elements, on up to `threads` threads.
template <class Real, std::size_t Count, class Function>
void map_elements(const RoundedOutput& out, const std::array<const Tensor*, Count>& inputs, Function function,
                  int threads = 1) {
  for_each_part(out, out.tensor->size(), threads, smallest_part_of_elements,
                [&](const RoundedOutput& part, std::size_t first, std::size_t last) {
                  map_part<Real>(part, inputs, function, first, last);
                });
}

}  // namespace sim
