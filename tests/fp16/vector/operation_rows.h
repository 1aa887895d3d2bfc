#pragma once
/// The operations on arrays, each beside the one on numbers that it repeats.

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>

#include "fp16/bulk.h"
#include "tests/fp16/vector/hard_operands.h"

namespace fp16 {

/// Three arrays; operations ignore those that they lack.
template <const Format& F>
struct OperandSpans {
  std::span<const Bits<F>> a, b, c;

  OperandSpans(const Operands<F>& operands) : OperandSpans(operands.a, operands.b, operands.c) {}
  OperandSpans(std::span<const Bits<F>> x, std::span<const Bits<F>> y, std::span<const Bits<F>> z)
      : a(x), b(y), c(z) {}
};

template <const Format& F>
struct OperationRow {
  std::string_view name;
  std::size_t operands;
  void (*array)(const OperandSpans<F>&, std::span<Bits<F>>, const Attributes&, const ArrayOptions&);
  Result<F> (*scalar)(Bits<F>, Bits<F>, Bits<F>, const Attributes&);
  long double (*approximate)(long double, long double, long double);
};

template <const Format& F>
inline const std::array operation_rows{
    OperationRow<F>{"add", 2, [](auto& x, auto out, auto& at, auto& o) { add<F>(x.a, x.b, out, at, o); },
                    [](auto a, auto b, auto, auto& at) { return add<F>(a, b, at); },
                    [](auto a, auto b, auto) { return a + b; }},
    OperationRow<F>{"subtract", 2,
                    [](auto& x, auto out, auto& at, auto& o) { subtract<F>(x.a, x.b, out, at, o); },
                    [](auto a, auto b, auto, auto& at) { return subtract<F>(a, b, at); },
                    [](auto a, auto b, auto) { return a - b; }},
    OperationRow<F>{"multiply", 2,
                    [](auto& x, auto out, auto& at, auto& o) { multiply<F>(x.a, x.b, out, at, o); },
                    [](auto a, auto b, auto, auto& at) { return multiply<F>(a, b, at); },
                    [](auto a, auto b, auto) { return a * b; }},
    OperationRow<F>{"divide", 2,
                    [](auto& x, auto out, auto& at, auto& o) { divide<F>(x.a, x.b, out, at, o); },
                    [](auto a, auto b, auto, auto& at) { return divide<F>(a, b, at); },
                    [](auto a, auto b, auto) { return a / b; }},
    OperationRow<F>{"sqrt", 1, [](auto& x, auto out, auto& at, auto& o) { sqrt<F>(x.a, out, at, o); },
                    [](auto a, auto, auto, auto& at) { return sqrt<F>(a, at); },
                    [](auto a, auto, auto) { return std::sqrt(a); }},
    OperationRow<F>{"fma", 3, [](auto& x, auto out, auto& at, auto& o) { fma<F>(x.a, x.b, x.c, out, at, o); },
                    [](auto a, auto b, auto c, auto& at) { return fma<F>(a, b, c, at); },
                    [](auto a, auto b, auto c) { return a * b + c; }},
};

}  // namespace fp16
