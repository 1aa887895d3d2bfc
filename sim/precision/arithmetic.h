#pragma once
/// What operations and updates compute in: the roles of a precision policy that they are handed.

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fp16/elementary.h"
#include "fp16/formats.h"
#include "fp16/gemm.h"
#include "fp16/rounding.h"

namespace sim {

/// How the products of a linear map add up: a chain, or the steps of a tensor core.
struct ProductAccumulation {
  fp16::Accumulation chain = fp16::Accumulation::fp32_fma_chain;
  std::optional<fp16::TensorCoreAccumulation> tensor_core;  ///< in the place of the chain

  /// True when a finished sum is a value of binary16, whatever it is stored in.
  bool ends_in_binary16() const;
};

/// The names of `--accumulation`: "fp32", "fp16_fma", "fp16_mul_add", and a tensor core's architecture with its
/// accumulator, "hopper_fp32", "ampere_fp16". binary64 is not one to choose.
std::vector<std::string> product_accumulation_names();

/// Throws std::invalid_argument with the nearest name and all allowed ones for an unknown name.
ProductAccumulation find_product_accumulation(std::string_view name);

/// The name under which it is found; "fp64" for the binary64 chain.
std::string name_of(const ProductAccumulation& products);

struct Arithmetic {
  ProductAccumulation products = {};
  /// Every partial sum of a reduction (bias gradients, means, softmax) is rounded to it: binary32, binary16
  /// or binary64.
  fp16::Format reductions = fp16::binary32;
  int threads = 1;  ///< of one operation; none of its bits depend on it
};

/// Everything in `format`, binary32 or binary64: what a twin computes with.
Arithmetic uniform_arithmetic(fp16::Format format, int threads);

/// What an update is computed in, as a precision policy asks for it.
struct UpdateArithmetic {
  /// The results of tensor operations are rounded to it, to nearest-even: binary64, binary32, bfloat16 or
  /// binary16. binary32 rounds every single operation, as PyTorch does for FP32 parameters and as its fused
  /// optimizers do for parameters of 16 bits. The 16-bit formats are what PyTorch's other optimizers do to
  /// 16-bit parameters: every tensor operation (lerp, addcmul, addcdiv, ...) computes in binary32, scalars
  /// too, and rounds its result. Then Adam's epsilon of 1e-8 is no more than 0 in binary16 (everything up to
  /// 2^-25 is), and a weight whose second moment has underflowed becomes NaN or infinite: 0/0 or m/0.
  fp16::Format operations = fp16::binary32;
  /// The moments between steps, rounded once per step. A step uses its own moments before that rounding.
  fp16::Format state = fp16::binary32;
  /// The rounding of a new weight of 16 bits; wider ones are always rounded to nearest-even. Stochastic
  /// rounding draws from RandomStream(seed, "update <parameter> <step>") at twice the element's index.
  fp16::Rounding weight_rounding = fp16::Rounding::nearest_even;
  std::uint64_t seed = 0;
  int threads = 1;  ///< of an update; no bit depends on it
};

/// x rounded to binary16 to nearest-even, as a float: float(half(x)) without branches, so that loops around
/// it turn into vector code. Equal to it for all 2^32 floats; only a NaN keeps its whole payload.
///
/// Adding 2^13 times the power of two below |x|, and at least 2^-1, leaves as many bits as binary16 has.
inline float rounded_to_binary16(float x) {
  using fp16::elementary::select;
  constexpr std::uint32_t infinity = 0x7f800000, min_normal = 0x38800000, times_2_to_13 = 13u << 23;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits & 0x80000000u, exponent = bits & infinity;
  const auto magnitude = std::bit_cast<float>(bits ^ sign);
  const auto shift = std::bit_cast<float>((exponent < min_normal ? min_normal : exponent) + times_2_to_13);
  const float rounded = (magnitude + shift) - shift;
  const float in_range = select(magnitude >= 65520.0f, std::bit_cast<float>(infinity), rounded);
  const float result = select(magnitude == magnitude, in_range, magnitude);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(result) | sign);
}

}  // namespace sim
