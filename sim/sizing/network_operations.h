#pragma once
/// The operations that networks are described by: what each does to shapes, keeps for backward, and costs.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/ops/operation.h"
#include "sim/tensor/tensor.h"

namespace sim {

/// By arithmetic intensity, from the highest (A. Ivanov et al., "Data Movement Is All You Need", MLSys 2021).
enum class OperatorClass {
  tensor_contraction,         ///< products of matrices and convolutions
  statistical_normalisation,  ///< a reduction, applied to every element: softmax, norms, losses
  element_wise,               ///< everything else: biases, activations, dropout, residuals, casts, poolings
};
inline constexpr std::array operator_classes{
    OperatorClass::tensor_contraction, OperatorClass::statistical_normalisation, OperatorClass::element_wise};

/// "tensor contraction", ...
std::string_view name_of(OperatorClass operator_class);

/// Settings of one operator; each operation has those that its row names.
struct OperatorSizes {
  std::uint64_t features = 0;  ///< of an output row
  std::uint64_t rows = 0;      ///< of an embedding's table
  std::uint64_t channels = 0;  ///< of a convolution's output
  std::uint64_t window = 0;    ///< of a convolution or pooling, along each side
  std::uint64_t stride = 1;    ///< likewise
  std::uint64_t padding = 0;   ///< likewise, on every side
  std::uint64_t heads = 1;     ///< of an attention
  std::uint64_t bias = 1;      ///< 1: a linear map has one, 0: it has none
};

struct OperatorSize {
  std::string_view name;
  std::uint64_t OperatorSizes::*field;
  std::uint64_t minimum;
};
/// Every field of OperatorSizes, by name.
std::span<const OperatorSize> operator_sizes();

/// The shapes around one operator.
struct OperatorShape {
  std::vector<Shape> inputs;
  Shape output;
  OperatorSizes sizes;
};

/// A row of the registry. Counts of elements and FLOP are exact; an addition, a multiplication, a comparison
/// and an elementary function count as one each.
struct NetworkOperation {
  using Count = std::uint64_t (*)(const OperatorShape& shape);

  std::string_view name;
  OperatorClass operator_class;
  /// The operation of the simulator whose autocast class decides its formats; null: it runs in that of its
  /// input.
  const Operation* operation;
  std::size_t inputs = 1;
  std::array<std::string_view, 4> required = {};  ///< names of OperatorSizes
  std::array<std::string_view, 4> optional = {};
  /// From inputs and sizes. Throws std::invalid_argument, saying what was found and what is allowed.
  Shape (*output)(const OperatorShape& shape);
  /// Shapes of the parameters, a weight and after it perhaps a bias.
  std::vector<Shape> (*parameters)(const OperatorShape& shape);
  /// What a framework that saves what it must has to have in backward.
  bool keeps_inputs = false;
  bool keeps_output = false;
  /// Elements saved besides, such as means or the probabilities of a loss: in binary32, under fp64 in
  /// binary64.
  Count saved_elements;
  /// Bytes of dropout's mask, one an element, and of the places that a pooling chose, eight an element. The
  /// simulator computes both again in backward and saves neither.
  Count mask_bytes;
  /// How many products every output of a contraction is the sum of. Backward takes as many multiplications
  /// and additions again for each operand that needs a gradient.
  Count product_terms;
  Count forward_flop;   ///< of everything else
  Count backward_flop;  ///< likewise
  /// Backward hands on the gradient that it is given: no work at all.
  bool passes_gradient_on = false;
};

/// Throws std::invalid_argument, naming the known ones, for an unknown name.
const NetworkOperation& find_network_operation(std::string_view name);

/// Whether its parameters are those of a batch norm, which a policy may keep in binary32.
bool is_batch_norm(const NetworkOperation& operation);

}  // namespace sim
