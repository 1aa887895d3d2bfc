#pragma once
/// What a linear map makes of its operands before it multiplies them: recipes of FP8 and FP4 training, under
/// which tensors stay in bfloat16 and products alone see narrow numbers.
///
/// A product of narrow operands is formed as any other, one chain of exact products in binary32, and each
/// finished sum is multiplied once by the factor of both operands, then rounded to the output's format. Block
/// scales that are powers of two, and NVFP4's of a block, are part of the numbers that are multiplied.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fp16/block_arrays.h"
#include "fp16/formats.h"
#include "sim/precision/tensor_scaler.h"
#include "sim/tensor/random.h"
#include "sim/tensor/tensor.h"

namespace sim {

/// How one kind of operand is narrowed.
struct OperandFormat {
  enum class Kind {
    as_stored,
    /// x * scale, rounded to binary32 and then, saturating, to `element`: infinities become the largest
    /// number, NaNs stay. The scale is a TensorScaler's; without one it is 1.
    per_tensor,
    /// Blocks of `block` along the dimension that is summed over, as encode_blocks (fp16/block.h). A tensor
    /// scale is that of the operand's largest magnitude.
    per_block,
  };
  Kind kind = Kind::as_stored;
  fp16::Format element = fp16::binary32;                ///< per_tensor: of at most 8 bits
  const fp16::BlockFormat* block = nullptr;             ///< per_block: a row of fp16::block_formats
  fp16::ScaleRule scale_rule = fp16::ScaleRule::floor;  ///< per_block, of scales that are powers of two
  bool stochastic = false;  ///< elements round stochastically, else to nearest-even
};

/// "as stored", "e4m3 per tensor", "mxfp4 rceil, stochastic".
std::string name_of(const OperandFormat& format);

struct OperandFormats {
  OperandFormat activations = {}, weights = {}, gradients = {};

  constexpr bool narrows() const {
    using enum OperandFormat::Kind;
    return activations.kind != as_stored || weights.kind != as_stored || gradients.kind != as_stored;
  }
  /// Whether a TensorScaler has anything to scale.
  constexpr bool narrows_per_tensor() const {
    using enum OperandFormat::Kind;
    return activations.kind == per_tensor || weights.kind == per_tensor || gradients.kind == per_tensor;
  }
};

enum class Operand { activations, weights, gradients };

/// The three products of a linear map, each with blocks along its own sum: a tensor is narrowed anew for
/// each.
enum class Product { output, input_gradient, weight_gradient };

struct OperandUse {
  Product product;
  Operand operand;
};

/// What is multiplied in the place of a tensor: the tensor itself, or narrow numbers in binary32, of which
/// the tensor is `factor` times.
class NarrowedOperand {
 public:
  /// Refers to the tensor.
  explicit NarrowedOperand(const Tensor& as_stored) : stored_(&as_stored) {}
  NarrowedOperand(Tensor values, double factor) : values_(std::move(values)), factor_(factor) {}

  const Tensor& tensor() const { return stored_ != nullptr ? *stored_ : values_; }
  double factor() const { return factor_; }

 private:
  const Tensor* stored_ = nullptr;
  Tensor values_;
  double factor_ = 1;
};

/// The operands of one layer in one step.
class OperandNarrowing {
 public:
  struct Context {
    TensorScaler* scaler = nullptr;  ///< of per_tensor formats; tensors are "<layer>.activations" and so on
    std::string_view layer = {};
    RandomStream random;    ///< this layer's and step's own; each use of an operand has its part of it
    std::size_t shard = 0;  ///< as Shard::index: of activations and gradients, but not of weights
    int threads = 1;        ///< no bit depends on it
  };

  /// What is referred to must outlive this.
  OperandNarrowing(const OperandFormats& formats, const Context& context)
      : formats_(formats), context_(context) {}

  /// `operand`, a tensor of at most 32 bits an element, for one product; `axis` is the dimension that the
  /// product sums over, or a part of it that blocks shall lie along.
  NarrowedOperand narrow(const Tensor& operand, const OperandUse& use, const fp16::BlockAxis& axis) const;

 private:
  const OperandFormat& format_of(Operand operand) const;
  double narrow_with_scale(const Tensor& operand, std::span<float> values, const OperandUse& use) const;
  double narrow_to_blocks(const Tensor& operand, std::span<float> values, const OperandUse& use,
                          const fp16::BlockAxis& axis) const;
  /// None unless the operand is rounded stochastically.
  std::optional<fp16::PhiloxSequence> random_of(const OperandUse& use, std::size_t elements) const;
  int threads_for(std::size_t elements) const;

  const OperandFormats& formats_;
  Context context_;
};

/// The narrowed operand; the operand as it is without anything to narrow with.
NarrowedOperand narrowed(const OperandNarrowing* narrowing, const Tensor& operand, const OperandUse& use,
                         const fp16::BlockAxis& axis);

}  // namespace sim
