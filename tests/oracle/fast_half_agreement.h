#pragma once
/// Holds fast_half.h to exact_half.h and to MPFR.

#include <cstdint>
#include <string>

namespace oracle {

/// Compares + - * / fma and the conversions from binary32 and binary64, in all directions with flags, and the
/// stochastic conversion from binary32, on `count` boundary-weighted cases of each. Returns the first
/// difference; empty: there is none.
std::string first_difference_of_fast_half(std::uint64_t seed, int count);

}  // namespace oracle
