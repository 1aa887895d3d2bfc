#pragma once
/// What operations on arrays are tested with: every direction, attributes, and operands of any format.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fp16/array_operations.h"
#include "tests/oracle/hard_cases.h"

namespace fp16 {

inline constexpr std::array every_rounding{
    Rounding::nearest_even,    Rounding::nearest_away, Rounding::toward_zero, Rounding::toward_positive,
    Rounding::toward_negative, Rounding::to_odd,       Rounding::stochastic};

/// What changes a result besides its direction.
inline constexpr std::array border_attributes{
    Attributes{},
    Attributes{.saturate = true},
    Attributes{.flush_to_zero = true},
    Attributes{.flush_to_zero = true, .tininess = Tininess::before_rounding},
    Attributes{.denormals_are_zero = true},
    Attributes{.saturate = true, .flush_to_zero = true, .denormals_are_zero = true},
    Attributes{.nan_policy = NanPolicy::canonical_nvidia},
    Attributes{.saturate = true, .nan_policy = NanPolicy::canonical_riscv},
};

template <const Format& F>
struct Operands {
  std::vector<Bits<F>> a, b, c;

  operator OperandSpans<F>() const { return {a, b, c}; }
};

/// A code of any class, one of three near a power of two or the borders of the format.
template <const Format& F>
Bits<F> hard_code(oracle::RandomBits& random) {
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - F.width());
  const std::uint64_t noise = random.next();
  const auto few = static_cast<std::uint64_t>(random.below(5)) - 2;
  if (random.below(3) != 0) return static_cast<Bits<F>>(noise & mask);
  const std::uint64_t powers = noise & ~std::uint64_t{trailing_mask<F>};
  return static_cast<Bits<F>>((powers + few) & mask);
}

/// With neighbours in b and c often close enough to cancel.
template <const Format& F>
Operands<F> hard_operands(std::size_t count) {
  Operands<F> operands;
  oracle::RandomBits random(45);
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - F.width());
  const auto near = [&](std::uint64_t code) {
    const std::uint64_t sign = static_cast<std::uint64_t>(random.below(2)) << (F.width() - 1);
    const auto few = static_cast<std::uint64_t>(random.below(9)) - 4;
    return static_cast<Bits<F>>(((code ^ sign) + few) & mask);
  };
  for (std::size_t i = 0; i < count; ++i) {
    operands.a.push_back(hard_code<F>(random));
    operands.b.push_back(i % 2 == 0 ? hard_code<F>(random) : near(operands.a[i]));
    const Bits<F> product = multiply<F>(operands.a[i], operands.b[i]).bits;
    operands.c.push_back(i % 3 == 0 ? hard_code<F>(random) : near(product));
  }
  return operands;
}

}  // namespace fp16
