#pragma once
/// The fused multiply-adds of cuda_fp16.h on all 2^48 triples of halves, held to two references.
///
/// A shard is one first operand a with all 2^32 pairs (b, c). Of every triple the device computes
/// `fma_functions`, NaNs and infinities included; none is inferred from another. A packed function gets each
/// triple twice, once in either number of its half2, beside the triple with c ^ 1. Since compute capability 8.0
/// ptxas gives packed calls to either of two units (HFMA2 and HFMA2.MMA in machine code) as suits it; which of
/// them a build's calls have, only cuobjdump -sass tells.
///
/// The first reference, for every triple, is `FmaReference`: a * b + c in binary64, then one conversion to
/// binary16. The second is the software fma (arithmetic.h), for every triple with codes a <= b <= 0x7fff and
/// any c; there it is compared with the first. So a sweep without mismatches shows
///   - that the device equals the first reference on all 2^48 triples,
///   - that the software equals it on the 2^15 (2^15 + 1) / 2 * 2^16 triples named,
/// and with the three symmetries that the software has, that the device equals the software on all 2^48:
///   fma(b, a, c) = fma(a, b, c)
///   fma(-a, -b, c) = fma(a, b, c)
///   fma(-a, b, -c) = -fma(a, b, c), but +0 on both sides where a * b and c cancel exactly, and the same NaN.
/// Each class of triples under them has a member among those named. The software reads the signs of a and b in
/// one place, where it compares them, their significands and exponents in their product and their sum, and
/// rounds magnitudes. The tests hold it to the symmetries on samples and borders.
///
/// A NaN may have any bits, other bits than 0x7FFF being counted apart; _sat makes +0 of it.
///
/// Why rounding twice is harmless here: let x = a * b + c be the exact value, of finite operands. A second
/// rounding goes wrong only if the first moves x onto a midpoint t of two neighbouring halves (or onto 65520,
/// where overflow begins) from beside it. All such t lie below 2^16; let 2^e <= |x| < 2^(e+1), so e <= 15, and
/// t is an odd multiple of 2^(e-11), too long to be a half. As x is a multiple of 2^-48, the first rounding is
/// exact below 2^5, where the subnormal halves are. Else it is inexact only if x has a bit of 2^(e-53) or less.
/// c has none below 2^-24, so that bit is the product's, whose bits span 22 places: |a * b| < 2^(e-31). Then
/// |c| > 2^(e-1), and c is a multiple of 2^(e-11) that is not t: x is 2^(e-11) - 2^(e-31) or more from t, while
/// the first rounding moves it by 2^(e-53) at most. A zero has the same sign in both formats.

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "experiments/gpu/probes/index.h"
#include "experiments/gpu/probes/sweep.h"
#include "fp16/config.h"

namespace experiments::probes {

inline constexpr std::array<std::string_view, 6> fma_functions{"__hfma",      "__hfma2",     "__hfma_sat",
                                                               "__hfma2_sat", "__hfma_relu", "__hfma2_relu"};

/// A run is all triples with the same a, b, sign of c and exponent of c: consecutive numbers, the number of a
/// triple being a << 32 | b << 16 | c.
inline constexpr unsigned fma_run_length = 1 << 10;
inline constexpr std::uint32_t fma_weight_step = 0x9e3779b1;

/// `inputs` are triples and mismatches answers, of which a packed function has two to each triple. A packed
/// function's counterexample has c's triple and that of c ^ 1 as operands, and c's answers from the first and
/// from the second number.
///
/// `digest` is the sum over all runs of digest_of(number of the first triple, first, second). `first` and
/// `second` are sums modulo 2^32 over the pairs i = 1, 2, ... of neighbouring triples, of
/// fma_weight_step^i * (answer for the even c + 2^16 * answer for the odd c): in `first` the answers of calls
/// with the even c in the first number, in `second` the others; a scalar function's are all in `first`, and
/// `second` is 0. A single wrong answer always changes them.
struct FmaSweepResult {
  /// One result for each of `fma_functions`; all have the milliseconds of the one kernel that computes them.
  std::array<SweepResult, 6> functions;
  /// The software against the first reference; `inputs` is 0 where no triple is to be compared.
  SweepResult software;
};

/// One shard, or `count_b` values of b of it from `first_b` on; the digests of parts add up to the shard's.
/// Throws std::invalid_argument if they are not all below 65536, std::runtime_error as in fp16/cuda/device.h.
FmaSweepResult run_fma(std::uint16_t a, std::uint32_t first_b = 0, std::uint32_t count_b = 1 << 16);

/// a * b + c in binary64 for the triples of a run. Special values are those of binary64.
struct FmaReference {
  double product;
  // The upper word of a double that is c / scale_c; its lower word is 0.
  std::uint32_t first_c_word;
  double scale_c;

  /// `first_c`: a multiple of `fma_run_length`.
  FP16_HD FmaReference(std::uint16_t a, std::uint16_t b, std::uint16_t first_c)
      : product(value(a) * value(b)), first_c_word(scaled_word(first_c)), scale_c(scale(first_c)) {}

  /// For c = first_c + offset.
  FP16_HD double sum(unsigned offset) const {
    return std::fma(double_of(first_c_word + (offset << significand_shift)), scale_c, product);
  }

 private:
  static constexpr int significand_shift = 20 - 10;

  FP16_HD static double double_of(std::uint32_t upper_word) {
    return std::bit_cast<double>(std::uint64_t{upper_word} << 32);
  }
  FP16_HD static bool is_special(std::uint16_t code) { return (code & 0x7c00) == 0x7c00; }
  // The fields of a half in those of a double make a number 2^-1008 times as large, subnormals included.
  FP16_HD static std::uint32_t scaled_word(std::uint16_t code) {
    const std::uint32_t magnitude = (code & 0x7fffu) << significand_shift;
    return (code & 0x8000u) << 16 | magnitude | (is_special(code) ? 0x7ff00000u : 0);
  }
  FP16_HD static double scale(std::uint16_t code) { return is_special(code) ? 1.0 : 0x1p1008; }
  FP16_HD static double value(std::uint16_t code) { return double_of(scaled_word(code)) * scale(code); }
};

/// Two codes, the first in the lower half of a word, as the three kinds of function should answer them.
struct FmaAnswers {
  std::uint32_t plain;
  std::uint32_t saturated;
  std::uint32_t relu;

  /// From two sums rounded to binary16, whose NaNs may have any bits.
  FP16_HD static FmaAnswers of_rounded(std::uint32_t codes) {
    const std::uint32_t nan = lanes_with_top_bit((codes & both(0x7fff)) + both(0x7fff - 0x7c00));
    const std::uint32_t plain = (codes | nan) & ~(nan & both(0x8000));
    const std::uint32_t relu = plain & ~lanes_with_top_bit(plain);
    const std::uint32_t above_one = lanes_with_top_bit(relu + both(0x7fff - 0x3c00));
    const std::uint32_t at_most_one = (relu & ~above_one) | (above_one & both(0x3c00));
    return {.plain = plain, .saturated = at_most_one & ~nan, .relu = relu};
  }

 private:
  FP16_HD static constexpr std::uint32_t both(std::uint32_t code) { return code << 16 | code; }
  /// All bits of every number whose highest bit is set.
  FP16_HD static std::uint32_t lanes_with_top_bit(std::uint32_t codes) {
#ifdef __CUDA_ARCH__
    // One instruction for three: prmt.b32 makes every byte eight times the sign of its number's upper byte.
    std::uint32_t lanes;
    asm("prmt.b32 %0, %1, 0, 0xbb99;" : "=r"(lanes) : "r"(codes));
    return lanes;
#else
    return (codes >> 15 & both(1)) * 0xffff;
#endif
  }
};

}  // namespace experiments::probes
