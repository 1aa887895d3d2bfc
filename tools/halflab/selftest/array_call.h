#pragma once
/// Calls over arrays, in every way that the library has for one, and over numbers.

#include <algorithm>
#include <span>
#include <vector>

#include "tools/halflab/selftest/fnv1a.h"
#include "tools/halflab/selftest/inputs.h"

namespace halflab::selftest {

inline void add(Fnv1a& hash, const fp16::RoundingCounts& counts) {
  for (const std::uint64_t count :
       {counts.exact, counts.inexact, counts.subnormal, counts.flushed, counts.overflowed})
    hash.add(count, 64);
}

/// The border attributes with this rounding.
inline auto borders_of(fp16::Rounding rounding) {
  auto attributes = border_attributes;
  for (fp16::Attributes& each : attributes) each.rounding = rounding;
  return attributes;
}

/// Adds what call(out, options) gives without outcomes, with flags and with counts, which take different ways; random bits
/// are drawn as it goes by one of them, and lie ready for the others.
template <class Code, class Call>
void add_calls(Fnv1a& hash, std::size_t size, const fp16::Attributes& attributes, Call&& call) {
  const bool is_drawn = attributes.rounding == fp16::Rounding::stochastic;
  const std::vector<std::uint32_t> bits = is_drawn ? drawn(size) : std::vector<std::uint32_t>();
  std::vector<Code> out(size);
  const auto add_call = [&](const fp16::ArrayOptions& options) {
    std::ranges::fill(out, Code{});
    call(std::span<Code>(out), options);
    hash.add(std::span<const Code>(out));
  };
  add_call({.random = is_drawn ? std::optional(draws) : std::nullopt});
  fp16::Flags flags;
  add_call({.flags = &flags, .random_bits_32 = bits});
  hash.add(flags);
  fp16::RoundingCounts counts;
  add_call({.counts = &counts, .random_bits_32 = bits});
  add(hash, counts);
}

/// Adds what apply(codes, attributes) gives for each of the operands.
inline void add_results(Fnv1a& hash, const validate::Evaluate& apply,
                        std::span<const validate::Operands> operands, fp16::Attributes attributes,
                        int width) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    attributes.random_bits = std::uint64_t{draws[2 * i]} << 32 | draws[2 * i + 1];
    hash.add(apply(operands[i], attributes), width);
  }
}

}  // namespace halflab::selftest
