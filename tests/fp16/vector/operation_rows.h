#pragma once
/// The operations on arrays, each beside the one on numbers that it repeats.

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "fp16/array_operations.h"
#include "tests/fp16/vector/hard_operands.h"

namespace fp16 {

template <const Format& F>
struct OperationRow : ArrayOperation<F> {
  Result<F> (*scalar)(Bits<F>, Bits<F>, Bits<F>, const Attributes&);
  long double (*approximate)(long double, long double, long double);
};

template <const Format& F>
constexpr ArrayOperation<F> array_operation(std::string_view name) {
  return *std::ranges::find(array_operations<F>, name, &ArrayOperation<F>::name);
}

template <const Format& F>
inline const std::array operation_rows{
    OperationRow<F>{array_operation<F>("add"),
                    [](auto a, auto b, auto, auto& at) { return add<F>(a, b, at); },
                    [](auto a, auto b, auto) { return a + b; }},
    OperationRow<F>{array_operation<F>("subtract"),
                    [](auto a, auto b, auto, auto& at) { return subtract<F>(a, b, at); },
                    [](auto a, auto b, auto) { return a - b; }},
    OperationRow<F>{array_operation<F>("multiply"),
                    [](auto a, auto b, auto, auto& at) { return multiply<F>(a, b, at); },
                    [](auto a, auto b, auto) { return a * b; }},
    OperationRow<F>{array_operation<F>("divide"),
                    [](auto a, auto b, auto, auto& at) { return divide<F>(a, b, at); },
                    [](auto a, auto b, auto) { return a / b; }},
    OperationRow<F>{array_operation<F>("sqrt"), [](auto a, auto, auto, auto& at) { return sqrt<F>(a, at); },
                    [](auto a, auto, auto) { return std::sqrt(a); }},
    OperationRow<F>{array_operation<F>("fma"),
                    [](auto a, auto b, auto c, auto& at) { return fma<F>(a, b, c, at); },
                    [](auto a, auto b, auto c) { return a * b + c; }},
};
static_assert(operation_rows<binary16>.size() == array_operations<binary16>.size());

}  // namespace fp16
