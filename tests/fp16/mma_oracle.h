#pragma once
/// The tensor-core step from its definition, in exact fixed point: every term is an integer multiple of
/// 2^-200, operands are read by the host's double, and nothing of the library is used. The pieces serve the
/// wrong models of mma_mutants.h too.

#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tests/oracle/exact_half.h"

namespace oracle::mma {

/// An exact value in units of 2^-200.
using Fixed = boost::multiprecision::int512_t;

/// The accumulator's format.
enum class Output { binary32, binary16 };

struct Parameters {
  int products_per_step;
  int fraction_bits;
  int alignment_floor;
};

/// The finite value of an operand, product or accumulator, and the exponent it is aligned by.
struct Term {
  Fixed value;
  int exponent;
};

/// A binary16 or binary32 code as a double; exact.
double value_of(Output format, std::uint32_t bits);

/// Term of a finite operand: exponent max(floor(log2 |x|), emin), and emin for zero.
Term operand(Output format, std::uint32_t bits);
/// Exact, not normalised.
Term product(std::uint16_t a, std::uint16_t b);
/// floor(log2 |value|); `value` is not zero.
int exponent_of(const Fixed& value);

/// `value` rounded to a multiple of 2^quantum_exponent.
Fixed round_to_multiple(const Fixed& value, int quantum_exponent, Direction direction);
/// The code of `value` rounded once to `format`, with its subnormals; beyond the largest finite number it is
/// infinite, in every direction. A negative value that rounds to zero gives -0, zero itself +0.
std::uint32_t round_to_format(const Fixed& value, Output format, Direction direction);

/// The finite double `value`, which has at most 25 bits.
Fixed fixed(double value);
/// 2^exponent
Fixed fixed_power(int exponent);

/// What NaNs and infinities among the terms decide; nothing if all are finite.
std::optional<std::uint32_t> special_result(Output output, std::span<const std::uint16_t> a,
                                            std::span<const std::uint16_t> b, std::uint32_t c);

/// c + a[0] * b[0] + ... in one step; a and b hold at most products_per_step.
std::uint32_t step(const Parameters& parameters, Output output, std::span<const std::uint16_t> a,
                   std::span<const std::uint16_t> b, std::uint32_t c);

}  // namespace oracle::mma
