#pragma once
/// How sums are formed: the roles of a precision policy that an operation computes with.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fp16/formats.h"
#include "fp16/gemm.h"
#include "fp16/half.h"

namespace sim {

/// How the products of a linear map add up: a chain, or the steps of a tensor core.
struct ProductAccumulation {
  fp16::Accumulation chain = fp16::Accumulation::fp32_fma_chain;
  std::optional<fp16::TensorCoreAccumulation> tensor_core = {};  ///< in the place of the chain

  /// True when a finished sum is a value of binary16, whatever it is stored in.
  bool ends_in_binary16() const;
};

/// As `--accumulation` names them: "fp32", "fp16_fma", "fp16_mul_add", and a tensor core's architecture with
/// its accumulator, "hopper_fp32", "ampere_fp16". Of binary64 there is none to choose.
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

/// sum = sum + term, rounded to `reductions`. For binary16 both hold values of binary16, and the binary32 sum
/// of two halves rounds to binary16 as their exact sum does: 24 >= 2 * 11 + 2 (Figueroa 1995).
inline void add_term(float& sum, float term, fp16::Format reductions) {
  sum += term;
  if (reductions == fp16::binary16) sum = fp16::half(sum);
}
inline void add_term(double& sum, double term, fp16::Format) {
  sum += term;
}

}  // namespace sim
