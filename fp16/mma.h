#pragma once
/// A model of the matrix multiply-accumulate of NVIDIA tensor cores with binary16 operands and a binary32 or
/// binary16 accumulator, bit for bit and in integers. The vendor leaves order and rounding unspecified; the
/// model is what published experiments have inferred, and each row below says what it was held against here.
///
/// One step fuses up to `products_per_step` products with the accumulator c:
///  1. Every operand x is s * 2^e with e = max(floor(log2 |x|), emin): subnormals are kept, not normalised.
///  2. A product has the exact significand s_a * s_b, |s| < 4, not normalised, and the exponent e_a + e_b.
///  3. e_max is the largest exponent among the non-zero products, a non-zero c and the alignment floor.
///  4. Products and c are truncated toward zero to multiples of 2^(e_max - fraction_bits), without a sticky
///     bit, and added exactly: the order within a step has no influence.
///  5. The sum is rounded once: toward zero to binary32, to nearest-even to binary16 (from the sum itself,
///     not by way of binary32, and beyond 65504 only here). A result of zero is +0, whatever the terms: a
///     negative sum that rounds to zero, too, unlike in IEEE 754.
/// A NaN, infinity * 0 or infinities of both signs give the NaN 0x7FFFFFFF or 0x7FFF; other infinities win.
/// GPUs have no exception flags, so there are none here.
///
/// The GPU vectors of a row are single steps of ordinary numbers. With a binary32 accumulator they fix
/// products_per_step, fraction_bits, truncation, c's part in the alignment and the rounding; with binary16
/// little beyond the step's length and the rounding. Not one of them reaches a floor, an overflow, an
/// infinity or NaN, the sign of a zero, the exponent of a subnormal or a case where a detour through binary32
/// toward zero would matter, and none has a second step: there the rows rest on the literature, but for
/// hopper, which an H200 has borne out in all of this (experiments/records/h200).
///
/// The H200 also decided two corners, and the other rows follow it: the zero of rule 5, which MMA-Sim has for
/// all, where this model had IEEE 754's -0 before; and that zero products stay out of the alignment, where
/// MMA-Sim gives them an exponent and so loses a c of 2^-149 beside 0 * 77.25. `validate_gpu` asks both of
/// every GPU first (open_questions of experiments/gpu/probes/tensor_core.h).
///
/// Sources: Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Computer
/// Science 7:e330, 2021; Xie et al., "MMA-Sim", arXiv:2511.10909; Khattak and Mikaitis, arXiv:2512.07004,
/// whose GPU vectors (MATLAB-tensor-core) the evidence refers to.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "arithmetic.h"
#include "config.h"
#include "unpacked.h"

namespace fp16 {

/// The evidence behind a row of `tensor_cores`.
enum class Evidence {
  /// The row is bit-equal to 5,000 steps recorded on such a GPU, with each accumulator.
  gpu_vectors,
  /// The row is bit-equal to as many steps, in files of Khattak and Mikaitis that are not among the test
  /// data. The tests repeat the comparison where somebody has put the files beside the others.
  gpu_vectors_once,
  /// The row is as published; it was held against no GPU here.
  literature,
};

constexpr std::string_view name_of(Evidence evidence) {
  switch (evidence) {
    case Evidence::gpu_vectors:
      return "GPU vectors";
    case Evidence::gpu_vectors_once:
      return "GPU vectors, not among the test data";
    case Evidence::literature:
      break;
  }
  return "from literature, unverified";
}

/// No non-zero term has an exponent below binary32's emin, so a floor there never binds.
inline constexpr int no_alignment_floor = binary32.emin();

/// The arithmetic of one architecture as data. The binary32 floor is beyond any experiment, because all
/// floors up to fraction_bits - 149 give the same bits: with a non-zero product e_max is at least -28, and c
/// alone, a multiple of 2^-149, is then never truncated.
struct TensorCore {
  std::string_view name;
  int products_per_step;
  int fraction_bits;   ///< bits kept below 2^e_max
  int binary32_floor;  ///< least e_max with a binary32 accumulator
  int binary16_floor;  ///< least e_max with a binary16 accumulator; binds if c = 0 and all products are small
  Evidence evidence;

  /// Whether 64 bits hold the sum of a step: products below 4 * 2^fraction_bits, and the accumulator.
  constexpr bool is_valid() const {
    return products_per_step >= 1 && fraction_bits >= 0 &&
           fraction_bits + 3 + bit_width(static_cast<unsigned>(products_per_step)) <= 63;
  }

  template <const Format& Accumulator>
  FP16_HD constexpr int alignment_floor() const {
    return Accumulator == binary32 ? binary32_floor : binary16_floor;
  }
};

inline constexpr TensorCore volta{.name = "volta",
                                  .products_per_step = 4,
                                  .fraction_bits = 23,
                                  .binary32_floor = no_alignment_floor,
                                  .binary16_floor = -19,
                                  .evidence = Evidence::gpu_vectors};
inline constexpr TensorCore turing{.name = "turing",
                                   .products_per_step = 8,
                                   .fraction_bits = 24,
                                   .binary32_floor = no_alignment_floor,
                                   .binary16_floor = -20,
                                   .evidence = Evidence::literature};
inline constexpr TensorCore ampere{.name = "ampere",
                                   .products_per_step = 8,
                                   .fraction_bits = 24,
                                   .binary32_floor = -132,
                                   .binary16_floor = -20,
                                   .evidence = Evidence::gpu_vectors};
inline constexpr TensorCore ada{.name = "ada",
                                .products_per_step = 8,
                                .fraction_bits = 24,
                                .binary32_floor = -132,
                                .binary16_floor = -20,
                                .evidence = Evidence::gpu_vectors_once};
inline constexpr TensorCore hopper{.name = "hopper",
                                   .products_per_step = 16,
                                   .fraction_bits = 25,
                                   .binary32_floor = -133,
                                   .binary16_floor = -21,
                                   .evidence = Evidence::gpu_vectors};
inline constexpr TensorCore blackwell{.name = "blackwell",
                                      .products_per_step = 16,
                                      .fraction_bits = 25,
                                      .binary32_floor = -133,
                                      .binary16_floor = -21,
                                      .evidence = Evidence::gpu_vectors_once};

/// A new architecture is one row.
inline constexpr std::array tensor_cores{volta, turing, ampere, ada, hopper, blackwell};

static_assert([] {
  for (const TensorCore& core : tensor_cores) {
    if (!core.is_valid()) return false;
  }
  return true;
}());

namespace detail {

using StepTerm = Unpacked<std::uint64_t>;

inline constexpr int product_fraction_bits = 2 * binary16.trailing_bits();

FP16_HD constexpr StepTerm step_product(std::uint16_t a, std::uint16_t b) {
  return product(unpack<binary16, std::uint64_t>(a), unpack<binary16, std::uint64_t>(b));
}

/// The larger of `top` and the exponent that `term` asks to be aligned to; a zero asks for nothing.
FP16_HD constexpr int raise_to(int top, const StepTerm& term, int term_fraction_bits) {
  const int exponent = term.exponent + term_fraction_bits;
  return term.significand != 0 && exponent > top ? exponent : top;
}

/// `term` in units of 2^quantum_exponent, truncated toward zero.
FP16_HD constexpr std::int64_t align(const StepTerm& term, int quantum_exponent) {
  if (term.significand == 0) return 0;  // not aligned by, so its shift has no bound
  const int shift = term.exponent - quantum_exponent;
  const std::uint64_t units = shift >= 0    ? term.significand << shift
                              : shift > -64 ? term.significand >> -shift
                                            : 0;
  return term.negative ? -static_cast<std::int64_t>(units) : static_cast<std::int64_t>(units);
}

/// The infinities and NaNs among the terms of a step.
struct StepSpecials {
  bool nan = false;
  bool positive_infinity = false;
  bool negative_infinity = false;

  FP16_HD constexpr void add_infinity(bool negative) {
    (negative ? negative_infinity : positive_infinity) = true;
  }
  FP16_HD constexpr bool any() const { return nan || positive_infinity || negative_infinity; }

  template <const Format& Accumulator>
  FP16_HD constexpr Bits<Accumulator> result() const {
    if (nan || (positive_infinity && negative_infinity))
      return default_nan<Accumulator>(NanPolicy::canonical_nvidia);
    return with_sign<Accumulator>(infinity_bits<Accumulator>, negative_infinity);
  }
};

template <const Format& Accumulator>
FP16_HD constexpr StepSpecials find_specials(std::span<const std::uint16_t> a,
                                             std::span<const std::uint16_t> b, Bits<Accumulator> c) {
  StepSpecials specials{.nan = is_nan<Accumulator>(c)};
  if (is_infinite<Accumulator>(c)) specials.add_infinity(is_negative<Accumulator>(c));
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (is_finite<binary16>(a[k]) && is_finite<binary16>(b[k])) continue;
    const bool undefined = is_nan<binary16>(a[k]) || is_nan<binary16>(b[k]) || is_zero<binary16>(a[k]) ||
                           is_zero<binary16>(b[k]);
    if (undefined) {
      specials.nan = true;
    } else {
      specials.add_infinity(is_negative<binary16>(a[k]) != is_negative<binary16>(b[k]));
    }
  }
  return specials;
}

}  // namespace detail

/// One step: c + a[0] * b[0] + a[1] * b[1] + ... a and b are of equal length, at most
/// core.products_per_step; a shorter step is one filled up with products 0 * 0, because a zero product
/// neither adds nor takes part in the alignment. The accumulator is binary32 or binary16.
///
/// How it is known: bit-equal to the GPU vectors for rows that say so; every row against the definition above
/// evaluated in 512-bit fixed point, 200,000 boundary-weighted steps with each accumulator.
template <const Format& Accumulator>
FP16_HD constexpr Bits<Accumulator> mma_step(const TensorCore& core, std::span<const std::uint16_t> a,
                                             std::span<const std::uint16_t> b, Code<Accumulator> c) {
  static_assert(Accumulator == binary32 || Accumulator == binary16);
  const detail::StepSpecials specials = detail::find_specials<Accumulator>(a, b, c);
  if (specials.any()) return specials.result<Accumulator>();

  const detail::StepTerm addend = unpack<Accumulator, std::uint64_t>(c);
  int top = detail::raise_to(core.alignment_floor<Accumulator>(), addend, Accumulator.trailing_bits());
  for (std::size_t k = 0; k < a.size(); ++k)
    top = detail::raise_to(top, detail::step_product(a[k], b[k]), detail::product_fraction_bits);

  const int quantum_exponent = top - core.fraction_bits;
  std::int64_t sum = detail::align(addend, quantum_exponent);
  for (std::size_t k = 0; k < a.size(); ++k)
    sum += detail::align(detail::step_product(a[k], b[k]), quantum_exponent);

  const bool negative = sum < 0;
  const detail::StepTerm total{.negative = negative,
                               .exponent = quantum_exponent,
                               .significand = static_cast<std::uint64_t>(negative ? -sum : sum)};
  // Toward zero never has to say what happens beyond the largest binary32: a c next to it truncates away
  // every product (at most 2^32, in units of 2^102 or more).
  constexpr Rounding rounding = Accumulator == binary32 ? Rounding::toward_zero : Rounding::nearest_even;
  const Bits<Accumulator> rounded = round_pack<Accumulator>(total, {rounding}).bits;
  return is_zero<Accumulator>(rounded) ? Bits<Accumulator>{0} : rounded;
}

/// c + the sum of a[k] * b[k], as a chain of steps: k ascending, products_per_step at a time, each step's
/// rounded result the next one's c. a and b are of equal length; without products the result is c. This is
/// how an instruction deeper than a step works (m16n8k16 is two steps on Ampere, one on Hopper), and a matrix
/// product that goes through k in ascending order without splitting it.
template <const Format& Accumulator>
FP16_HD constexpr Bits<Accumulator> mma_dot(const TensorCore& core, std::span<const std::uint16_t> a,
                                            std::span<const std::uint16_t> b, Code<Accumulator> c) {
  const auto step = static_cast<std::size_t>(core.products_per_step);
  for (std::size_t k = 0; k < a.size(); k += step) {
    const std::size_t count = a.size() - k < step ? a.size() - k : step;
    c = mma_step<Accumulator>(core, a.subspan(k, count), b.subspan(k, count), c);
  }
  return c;
}

}  // namespace fp16
