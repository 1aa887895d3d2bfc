#pragma once
/// The operations of bulk.h by name. Needs halflab::fp16_bulk.

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "bulk.h"

namespace fp16 {

/// Up to three arrays of operands; an operation ignores those that it lacks.
template <const Format& F>
struct OperandSpans {
  std::span<const Bits<F>> a, b, c;
};

/// An operation on arrays.
template <const Format& F>
struct ArrayOperation {
  std::string_view name;
  std::size_t operands;
  void (*apply)(const OperandSpans<F>& operands, std::span<Bits<F>> out, const Attributes& attributes,
                const ArrayOptions& options);
};

/// Every operation on arrays. A new one is one row.
template <const Format& F>
inline constexpr std::array array_operations{
    ArrayOperation<F>{"add", 2, [](auto& x, auto out, auto& at, auto& o) { add<F>(x.a, x.b, out, at, o); }},
    ArrayOperation<F>{"subtract", 2,
                      [](auto& x, auto out, auto& at, auto& o) { subtract<F>(x.a, x.b, out, at, o); }},
    ArrayOperation<F>{"multiply", 2,
                      [](auto& x, auto out, auto& at, auto& o) { multiply<F>(x.a, x.b, out, at, o); }},
    ArrayOperation<F>{"divide", 2,
                      [](auto& x, auto out, auto& at, auto& o) { divide<F>(x.a, x.b, out, at, o); }},
    ArrayOperation<F>{"sqrt", 1, [](auto& x, auto out, auto& at, auto& o) { sqrt<F>(x.a, out, at, o); }},
    ArrayOperation<F>{"fma", 3,
                      [](auto& x, auto out, auto& at, auto& o) { fma<F>(x.a, x.b, x.c, out, at, o); }},
};

}  // namespace fp16
