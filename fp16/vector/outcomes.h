#pragma once
/// What rounding did to the elements of a block, as counts and as flags, told from the exact results of all of them at
/// once. Internal to bulk.

#include <bit>
#include <cstddef>
#include <cstdint>

#include "fp16/bulk.h"
#include "fp16/vector/borders.h"

namespace fp16::detail {

/// Magnitudes, as the bits of floats, that part the outcomes of rounding to a format.
struct OutcomeBorders {
  std::uint32_t min_normal;
  std::uint32_t dropped_bits;       ///< of a number from `one_spacing_below` on
  std::uint32_t one_spacing_below;  ///< numbers below are multiples of the smallest; 0: in binary32 too
  float spacing;                    ///< binary32 numbers from here on are such multiples
  RoundingBorder tiny;
  bool flushes_tiny;
  std::uint32_t overflow[2];  ///< from here on positive, negative numbers overflow
  std::uint32_t not_a_loss;   ///< from here on the result stands for the input: a NaN, an infinity held
  std::uint32_t open_from;    ///< from here on to `overflow` only the operation itself tells
  std::uint32_t large_from;   ///< the least of those three
};

/// How many of a block rounding changed, and how many were beyond a border.
struct Losses {
  std::uint32_t changed, overflowed, underflowed, zeros, nans;
};

struct SmallCodes {
  std::uint32_t subnormal, zero;
};

/// The numbers of subnormal codes and of zeros. `count` must be at most block_size.
template <typename Code>
SmallCodes count_small(const Format& format, const Code* codes, std::size_t count);

/// Whether an operation is invalid though no operand is a NaN: where a result is one.
bool has_invalid_result(const float* a, const float* b, const float* c, const float* exact,
                        std::size_t count);

/// Whether a finite number that is not zero is divided by zero.
bool divides_by_zero(const float* a, const float* b, std::size_t count);

template <typename Code>
bool has_signalling_nan(const Format& format, const Code* codes, std::size_t count);
bool has_signalling_nan(const float* values, std::size_t count);

/// What became of the elements so far, as far as that was asked for.
struct Outcomes {
  RoundingCounts counts;
  Flags flags;
};

/// Finds the outcomes of rounding to a format, but for invalid and divide_by_zero.
class OutcomeFinder {
 public:
  OutcomeFinder(const ArrayFormat& format, const Attributes& attributes, const ArrayOptions& options);

  bool is_needed() const { return counts_ || flags_; }
  bool finds_flags() const { return flags_; }

  /// Where the largest numbers of binary32 stand for all that overflow, they tell no more.
  void hold_largest_open();

  /// Finds the outcomes of `count` results rounded to `codes`; alone(i), with its flags, is called for the few that only
  /// the operation itself tells. What is known of flags is not looked for again.
  template <typename Code, typename Alone>
  void find(const Extremes& extremes, const float* exact, const Code* codes, std::size_t count,
            Outcomes& outcomes, Alone alone) const {
    const bool may_be_large = extremes.largest >= borders_.large_from;
    const bool may_be_small = extremes.smallest_nonzero < borders_.min_normal;
    if (counts_ || is_open(extremes, outcomes.flags)) {
      const Losses losses = losses_of(may_be_small, may_be_large, exact, count);
      outcomes.flags |= {.inexact = losses.changed != 0,
                         .underflow = losses.underflowed != 0,
                         .overflow = losses.overflowed != 0};
      RoundingCounts& counts = outcomes.counts;
      counts.exact += count - losses.changed;
      counts.inexact += losses.changed - losses.overflowed;
      counts.overflowed += losses.overflowed;
      if (counts_ && may_be_small) {
        const SmallCodes small = count_small(format_, codes, count);
        counts.subnormal += small.subnormal;
        counts.flushed += small.zero - losses.zeros - (format_.has_nan() ? 0 : losses.nans);
      }
    }
    if (extremes.largest >= borders_.open_from) {
      for_each_between(borders_.open_from, borders_.overflow, exact, count, [&](std::size_t i) {
        const bool overflowed = alone(i).flags.overflow;
        outcomes.counts.inexact -= overflowed;
        outcomes.counts.overflowed += overflowed;
        outcomes.flags.overflow |= overflowed;
      });
    }
    if (may_be_small && borders_.tiny.is_drawn && flags_ && !outcomes.flags.underflow) {
      const std::uint32_t normal[2]{borders_.min_normal, borders_.min_normal};
      for_each_between(borders_.tiny.from[0], normal, exact, count,
                       [&](std::size_t i) { outcomes.flags.underflow |= alone(i).flags.underflow; });
    }
  }

 private:
  /// Whether the results may raise a flag that is not known.
  bool is_open(const Extremes& extremes, const Flags& known) const;
  Losses losses_of(bool may_be_small, bool may_be_large, const float* exact, std::size_t count) const;

  /// use(i) where a magnitude is from `from` on and below below[negative].
  template <typename Use>
  static void for_each_between(std::uint32_t from, const std::uint32_t* below, const float* exact,
                               std::size_t count, Use use) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(exact[i]);
      const std::uint32_t magnitude = bits & 0x7fffffff;
      if (magnitude >= from && magnitude < below[bits >> 31]) use(i);
    }
  }

  const Format& format_;
  OutcomeBorders borders_ = {};
  bool counts_;
  bool flags_;
};

}  // namespace fp16::detail
