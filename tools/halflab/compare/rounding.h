#pragma once
/// Which rounding, flush or freedom of the formats would explain that two tensors differ.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fp16/formats.h"

namespace halflab::compare {

struct Counts;

/// What was found under one format, to nearest even and toward zero.
struct RoundedTo {
  // Of the differing:
  std::uint64_t agree = 0;      ///< equal once both are rounded
  std::uint64_t a_rounded = 0;  ///< A is what B is rounded to
  std::uint64_t b_rounded = 0;
  std::uint64_t a_truncated = 0;  ///< toward zero
  std::uint64_t b_truncated = 0;
  // Of all elements, whether any is no value of the format:
  bool inexact_a = false;
  bool inexact_b = false;

  RoundedTo& operator+=(const RoundedTo& other);
};

/// Formats that somebody may have rounded to; those with a finer step first.
inline constexpr std::array rounding_formats{
    fp16::NamedFormat{"binary32", fp16::binary32}, fp16::NamedFormat{"tf32", fp16::tf32},
    fp16::NamedFormat{"binary16", fp16::binary16}, fp16::NamedFormat{"bfloat16", fp16::bfloat16},
    fp16::NamedFormat{"e4m3", fp16::e4m3},         fp16::NamedFormat{"e5m2", fp16::e5m2}};

struct RoundingFound {
  std::array<RoundedTo, rounding_formats.size()> by_format;
  /// The formats that coarser_than names; all where nothing was added.
  std::array<bool, rounding_formats.size()> applies;

  RoundingFound() { applies.fill(true); }
  RoundingFound& operator+=(const RoundingFound& other);

  /// Adds values at the same places. Two NaNs agree; -0 and +0 do not.
  template <class Number>
  void add(std::span<const Number> a, std::span<const Number> b);
};

/// The formats of rounding_formats that lose something of one of these, and are not wider than either: whoever rounds to
/// TF32 and then stores FP16 has rounded to FP16.
std::array<bool, rounding_formats.size()> coarser_than(const fp16::Format& a, const fp16::Format& b);

/// A cause, and how many of the differing elements it explains.
struct Explanation {
  std::string text;  ///< "A is B rounded to bfloat16"
  std::uint64_t explained;
  bool is_complete;  ///< it holds for all elements, equal ones included
};

/// All that explain something: roundings to finer formats first.
std::vector<Explanation> explanations(const Counts& counts, const RoundingFound& rounding);

}  // namespace halflab::compare
