#pragma once
/// The functions that other people's kernels can be held to. A new one is one row of functions.cpp.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fp16/formats.h"
#include "fp16/rounding.h"

namespace halflab::validate {

/// The codes of up to three operands.
using Operands = std::array<std::uint64_t, 3>;

/// The code of the result, rounded once.
using Evaluate = std::function<std::uint64_t(const Operands&, const fp16::Attributes&)>;

struct Function {
  std::string_view name;
  int arity;
  /// How it is computed for operands and results of these formats; none where that is not known in this direction. A
  /// result in binary32 of narrower operands is rounded once, too.
  std::function<Evaluate(const fp16::Format& operands, const fp16::Format& result, fp16::Rounding rounding)>
      in;
};

/// Operations of any format with arithmetic, `cast` between any two, and the functions of fp16/math.h: of formats within
/// binary16 in every direction; in bfloat16 those of fp16/elementary.h to nearest.
const std::vector<Function>& functions();

/// Throws std::invalid_argument with all names.
const Function& find_function(std::string_view name);

/// Questions about codes of a format that is known at run time.
struct CodeQuestions {
  bool (*is_nan)(std::uint64_t);
  bool (*is_zero)(std::uint64_t);
  bool (*is_infinite)(std::uint64_t);
  std::int64_t (*ordinal)(std::uint64_t);  ///< no NaN
  std::uint64_t (*distance)(std::uint64_t, std::uint64_t);
};
CodeQuestions questions_of(const fp16::Format& format);

}  // namespace halflab::validate
