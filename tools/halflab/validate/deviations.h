#pragma once
/// Known ways in which kernels differ from the exact result rounded once.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tools/halflab/validate/functions.h"

namespace halflab::validate {

struct Deviation {
  std::string text;  ///< "it rounds toward zero"
  /// Whether it makes this result of what is expected instead.
  std::function<bool(const Operands& operands, std::uint64_t expected, std::uint64_t result)> explains;
  /// Whether it would not give this result, which is right.
  std::function<bool(const Operands& operands, std::uint64_t result)> contradicts;
  /// Whether it says how results are rounded, so that a kernel has one such deviation and no second.
  bool is_rounding = false;
  /// Whether it says only between which results the kernel's lie.
  bool is_range = false;
  /// What it changes of the way in which the right result is computed, where that is all it does.
  std::function<void(fp16::Attributes&)> change = {};
};

/// Whether one of the chosen says only between which results the kernel's lie.
bool has_range(const std::vector<Deviation>& deviations, const std::vector<std::size_t>& chosen);

/// At most this many, so that a set of them fits into a word.
inline constexpr std::size_t most_deviations = 32;

/// The deviations that the function can have in these formats. `attributes` are what was asked for, where any NaN will do with
/// `any_nan`. Throws std::logic_error for more than most_deviations.
std::vector<Deviation> deviations_of(const Function& function, const fp16::Format& operands,
                                     const fp16::Format& result, const fp16::Attributes& attributes,
                                     bool any_nan = false);

}  // namespace halflab::validate
