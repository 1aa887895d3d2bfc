#pragma once
/// The numbers that the formats hold: how far they reach and how they lie.

#include <cstdint>
#include <string>
#include <vector>

#include "fp16/codec.h"
#include "fp16/format.h"

namespace experiments::formats {

/// log2 of the largest number over the smallest positive one, to four decimals, which sim::log2_of has right.
double range_octaves(const fp16::Format& format);

/// "infinities, NaNs": what the codes stand for besides finite numbers.
std::string special_values(const fp16::Format& format);

/// How many numbers lie in [2^exponent, 2^(exponent + 1)), for exponents within the range.
double values_in_octave(const fp16::Format& format, int exponent);

/// The finite numbers above zero of a format of up to 16 bits, ascending.
template <const fp16::Format& F>
std::vector<double> positive_values() {
  std::vector<double> values;
  for (std::uint64_t code = F.has_zero(); code <= F.max_finite_code(); ++code)
    values.push_back(fp16::decode<F>(static_cast<fp16::Bits<F>>(code)));
  return values;
}

/// Whether in every format of up to 16 bits the codes, all decoded, are what fp16::Format computes of them.
bool codes_agree();

}  // namespace experiments::formats
