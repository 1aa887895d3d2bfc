#pragma once
/// Operations on binary16 codes in double arithmetic, rounded once by code of its own: independent of the
/// integers of fp16/. NaN results are 0x7FFF, as NVIDIA's.
///
/// Why double is enough: sums, differences and products of two binary16 numbers are exact. Quotients, square
/// roots and a * b + c are rounded to 53 bits first, and none of them lies so close to a midpoint of two
/// neighbours, without being it, that those 53 bits could reach it (53 >= 2 * 11 + 2; of a * b + c the
/// distance is at least 2^-34 of it).

#include <cstdint>

namespace experiments::validate_gpu::double_oracle {

enum class Direction { nearest_even, toward_zero, up, down };

inline constexpr std::uint16_t canonical_nan = 0x7FFF;

double decode(std::uint16_t code);
std::uint16_t encode(double value, Direction direction = Direction::nearest_even);

/// `value` is a binary16 number, and what is asked for the integer that it rounds to.
double to_integral(double value, Direction direction);

}  // namespace experiments::validate_gpu::double_oracle
