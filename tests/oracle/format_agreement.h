#pragma once
/// Holds results of the library in any format to exact_operations.h, in every rounding and with every option.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "fp16/bits.h"
#include "fp16/formats.h"
#include "fp16/unpacked.h"
#include "tests/oracle/agreement.h"
#include "tests/oracle/exact_operations.h"
#include "tests/oracle/hard_cases.h"

namespace oracle {

/// Every operation is compared in this many roundings: six directions, and stochastic with the random bits
/// all zero, all one, around the threshold (just moving away, just not), and arbitrary.
inline constexpr std::array<std::string_view, 11> rounding_names{"nearest_even",
                                                                 "nearest_away",
                                                                 "toward_zero",
                                                                 "toward_positive",
                                                                 "toward_negative",
                                                                 "to_odd",
                                                                 "stochastic r = 0",
                                                                 "stochastic r = max",
                                                                 "stochastic below threshold",
                                                                 "stochastic at threshold",
                                                                 "stochastic"};

/// The options of an operation but its rounding, numbered: 0 is the default.
struct Options {
  bool saturate, flush_to_zero, denormals_are_zero, tiny_before_rounding;
  NanChoice nan;

  static constexpr int count = 48;
  explicit constexpr Options(int index)
      : saturate((index & 1) != 0),
        flush_to_zero((index & 2) != 0),
        denormals_are_zero((index & 4) != 0),
        tiny_before_rounding((index & 8) != 0),
        nan(static_cast<NanChoice>(index / 16)) {}

  /// All choices in irregular turn, so that none goes only with some operands.
  static constexpr Options of_case(std::uint64_t index) {
    return Options(static_cast<int>((index * 0x9e3779b97f4a7c15 >> 32) % count));
  }
};

template <const fp16::Format& F>
const ExactFormat& exact() {
  static const ExactFormat& format = exact_format(fp16::name_of(F));
  return format;
}

template <const fp16::Format& F>
Answer as_answer(const fp16::Result<F>& result) {
  return {.bits = result.bits,
          .inexact = result.flags.inexact,
          .underflow = result.flags.underflow,
          .overflow = result.flags.overflow,
          .divide_by_zero = result.flags.divide_by_zero,
          .invalid = result.flags.invalid};
}

inline fp16::Attributes attributes_of(const Options& options) {
  return {.saturate = options.saturate,
          .flush_to_zero = options.flush_to_zero,
          .denormals_are_zero = options.denormals_are_zero,
          .tininess =
              options.tiny_before_rounding ? fp16::Tininess::before_rounding : fp16::Tininess::after_rounding,
          .nan_policy = static_cast<fp16::NanPolicy>(options.nan)};
}

/// The operand as the options let an operation read it.
template <const fp16::Format& F>
std::uint64_t operand(const Options& options, std::uint64_t code) {
  return options.denormals_are_zero ? exact<F>().without_subnormals(code) : code;
}

/// Compares compute(attributes) with `ideal`, whose operands were read with the same options, in all
/// roundings. `random_width`: how many random bits the operation uses.
template <const fp16::Format& F, typename Compute>
void agree(Comparison& comparison, const Ideal& ideal, const Options& options,
           std::initializer_list<std::uint64_t> operands, Compute compute, int random_width = 64) {
  const Placed placed(exact<F>(), ideal);
  const std::uint64_t threshold = placed.fraction_bits() >> (64 - random_width);
  const std::uint64_t ignored = random_width == 64 ? 0 : 0x123456789abcdef0 << random_width;
  RandomBits random(threshold ^ *operands.begin());
  const std::array<std::uint64_t, 5> random_bits{0, ~std::uint64_t{0}, threshold == 0 ? 0 : threshold - 1,
                                                 threshold, random.next()};
  fp16::Attributes attributes = attributes_of(options);
  Settings settings{.random_width = random_width,
                    .saturate = options.saturate,
                    .flush_to_zero = options.flush_to_zero,
                    .tiny_before_rounding = options.tiny_before_rounding,
                    .nan = options.nan};
  for (std::size_t i = 0; i < rounding_names.size(); ++i) {
    const bool stochastic = i >= roundings.size();
    settings.mode = stochastic ? Mode::stochastic : static_cast<Mode>(i);
    attributes.rounding = stochastic ? fp16::Rounding::stochastic : roundings[i];
    settings.random_bits = stochastic ? random_bits[i - roundings.size()] ^ ignored : 0;
    attributes.random_bits = settings.random_bits;
    comparison.equal(as_answer<F>(compute(attributes)), placed.rounded(settings), rounding_names[i],
                     operands);
  }
}

}  // namespace oracle
