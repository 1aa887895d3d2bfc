#pragma once
/// Matrix products by halves, in every layout.

#include <functional>
#include <span>
#include <vector>

#include "fp16/gemm.h"
#include "tools/halflab/selftest/fnv1a.h"

namespace halflab::selftest {

/// A row-major product: its elements, of the type of the accumulator.
template <class Real>
using Multiply = std::function<void(const fp16::MatrixOperand& a, const fp16::MatrixOperand& b, Real* c)>;

/// A hash of the products of matrices of several shapes, stored either way, without and with infinities, NaNs and subnormal numbers.
template <class Real>
std::uint64_t hash_of_products(const Multiply<Real>& multiply);

extern template std::uint64_t hash_of_products(const Multiply<float>& multiply);
extern template std::uint64_t hash_of_products(const Multiply<double>& multiply);

}  // namespace halflab::selftest
