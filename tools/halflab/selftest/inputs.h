#pragma once
/// What the results of `halflab selftest` are computed from. All of it is a function of its arguments alone, by Philox.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fp16/array_operations.h"
#include "fp16/formats.h"
#include "fp16/rounding_names.h"
#include "tools/halflab/validate/operands.h"

namespace halflab::selftest {

/// Attributes besides the rounding that change a result.
inline constexpr std::array border_attributes{
    fp16::Attributes{},
    fp16::Attributes{.saturate = true},
    fp16::Attributes{.flush_to_zero = true},
    fp16::Attributes{.flush_to_zero = true, .tininess = fp16::Tininess::before_rounding},
    fp16::Attributes{.denormals_are_zero = true},
    fp16::Attributes{.saturate = true, .flush_to_zero = true, .denormals_are_zero = true},
    fp16::Attributes{.nan_policy = fp16::NanPolicy::canonical_nvidia},
    fp16::Attributes{.saturate = true, .nan_policy = fp16::NanPolicy::canonical_riscv},
};

/// A hash over several roundings is one over these. Another rounding gets rows of its own.
inline constexpr const auto& roundings = fp16::named_roundings;
static_assert(roundings.size() == 7,
              "the hashes of seven roundings would change: name those, add rows for the new one");

/// Boundary-weighted codes of up to three operands: what `halflab inputs` would write.
std::vector<validate::Operands> weighted_operands(const fp16::Format& format, std::size_t count);

/// Arrays of such codes.
template <const fp16::Format& F>
struct OperandArrays {
  std::vector<fp16::Bits<F>> a, b, c;

  explicit OperandArrays(std::size_t count) {
    for (const validate::Operands& codes : weighted_operands(F, count)) {
      a.push_back(static_cast<fp16::Bits<F>>(codes[0]));
      b.push_back(static_cast<fp16::Bits<F>>(codes[1]));
      c.push_back(static_cast<fp16::Bits<F>>(codes[2]));
    }
  }
  operator fp16::OperandSpans<F>() const { return {a, b, c}; }
};

/// Floats of every exponent, and those halfway between two numbers of the format with their neighbours.
std::vector<float> hard_floats(const fp16::Format& format);

/// Random bits, a number for each element, of calls that round stochastically.
inline constexpr fp16::PhiloxSequence draws{.generator = {.key = 7, .stream = 9}, .first = 5};
std::vector<std::uint32_t> drawn(std::size_t count);

/// +-m 2^e with uniform m in [1, 2) and e in -3 .. 3, which add up without overflow and cancel now and then.
std::vector<double> moderate_numbers(std::size_t count, std::uint64_t stream);

}  // namespace halflab::selftest
