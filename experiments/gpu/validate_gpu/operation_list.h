#pragma once
/// What the lists of operations have in common.

#include <cstdint>
#include <vector>

#include "experiments/gpu/validate_gpu/operations.h"
#include "experiments/validation/double_oracle.h"
#include "fp16/formats.h"
#include "fp16/operations.h"
#include "fp16/rounding.h"

namespace experiments::validate_gpu {

using double_oracle::decode;
using double_oracle::Direction;
using double_oracle::encode;
using fp16::binary16;
using fp16::Rounding;
using Code = std::uint16_t;
using Operations = std::vector<Operation>;

constexpr fp16::Attributes nvidia(Rounding rounding = Rounding::nearest_even) {
  return {.rounding = rounding, .nan_policy = fp16::NanPolicy::canonical_nvidia};
}

template <auto operation>
std::uint64_t unary(const Operands& operands) {
  return operation(static_cast<Code>(operands.a));
}

/// An operation of fp16/ops.h, which the kernels are held to as well.
template <class Functor>
std::uint64_t software(const Operands& operands) {
  return fp16::ops::apply_to_codes<Functor>({operands.a, operands.b, operands.c});
}

inline const std::vector<Subject> everywhere{Subject::software_half, Subject::cuda_header,
                                             Subject::cuda_header_packed, Subject::gpu, Subject::gpu_packed};
inline const std::vector<Subject> scalars{Subject::software_half, Subject::cuda_header, Subject::gpu};
inline const std::vector<Subject> packed_forms{Subject::cuda_header_packed, Subject::gpu_packed};
inline const std::vector<Subject> native{Subject::cuda_header, Subject::cuda_header_packed, Subject::gpu,
                                         Subject::gpu_packed};
inline const std::vector<Subject> not_in_header{Subject::software_half, Subject::gpu, Subject::gpu_packed};
inline const std::vector<Subject> not_in_header_scalar{Subject::software_half, Subject::gpu};
inline const std::vector<Subject> scalars_and_packed_gpu{Subject::software_half, Subject::cuda_header,
                                                         Subject::gpu, Subject::gpu_packed};
inline const std::vector<Subject> gpu_only{Subject::gpu, Subject::gpu_packed};

/// Sums, products, comparisons, extrema, signs and classes.
void append_arithmetic(Operations& rows);

/// To and from floating-point numbers and integers, and to integers within the format.
void append_conversions(Operations& rows);

/// Elementary functions, most of which are not promised to be correctly rounded.
void append_functions(Operations& rows);

}  // namespace experiments::validate_gpu
