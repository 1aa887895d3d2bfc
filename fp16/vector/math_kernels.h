#pragma once
/// Internal to the functions of half: their values as double-doubles, and the rounding of these to odd.
///
/// A kernel takes the exact value of a finite half and returns the function with a relative error below
/// 2^-80, a zero or an infinity with its sign, or NaN outside the domain. Two kinds of results need only the
/// right side of the right binary32 number, not their digits, and kernels cut their arguments accordingly:
/// results beyond binary32's range, and results within 2^-60 of a binary32 number that they never reach (as
/// tanh comes near to 1).

#include <cstdint>

#include "fp16/unpacked.h"
#include "fp16/vector/double_double.h"

namespace fp16::detail {

inline constexpr DoubleDouble pi{0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};
inline constexpr DoubleDouble half_pi{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
inline constexpr DoubleDouble ln2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

/// No kernel comes closer than this to a binary32 number, relatively, unless it stands for the number itself.
inline constexpr double exactness_threshold = 0x1p-75;

/// The code of the binary32 number with an odd significand next to `value`, or of `value` itself if it is
/// within `threshold` of a binary32 number, relatively. Beyond the range: the largest finite or the smallest
/// subnormal number. With threshold 0 the value is taken as it is.
std::uint32_t round_to_odd(DoubleDouble value, double threshold);

/// Half from the code of a binary32 number rounded to odd, as a function returns it: NaN stands for an
/// invalid operation, an infinity of finite operands for a pole.
Result<binary16> round_from_odd(std::uint32_t odd, bool finite_operands, const Attributes& attributes);

/// e^x for |x| <= 600.
DoubleDouble exponential(DoubleDouble x);

/// The natural logarithm of x > 0.
DoubleDouble logarithm(DoubleDouble x);

/// The angle of the point (1, x), for any finite x.
DoubleDouble arc_tangent(DoubleDouble x);

/// The results of the functions of two halves as codes rounded to odd. The arguments are exact values of
/// positive, finite halves; `y` of pow may also be negative, and one argument of hypot zero. The angle is
/// that of (x, y), or of (-x, y) in the second quadrant.
std::uint32_t pow_to_odd(double x, double y);
std::uint32_t hypot_to_odd(double x, double y);
std::uint32_t atan2_to_odd(double y, double x, bool second_quadrant);

namespace kernel {

DoubleDouble exp(double x);
DoubleDouble exp2(double x);
DoubleDouble exp10(double x);
DoubleDouble expm1(double x);
DoubleDouble log(double x);
DoubleDouble log2(double x);
DoubleDouble log10(double x);
DoubleDouble log1p(double x);
DoubleDouble sin(double x);
DoubleDouble cos(double x);
DoubleDouble tan(double x);
DoubleDouble asin(double x);
DoubleDouble acos(double x);
DoubleDouble atan(double x);
DoubleDouble sinh(double x);
DoubleDouble cosh(double x);
DoubleDouble tanh(double x);
DoubleDouble asinh(double x);
DoubleDouble acosh(double x);
DoubleDouble atanh(double x);
DoubleDouble cbrt(double x);
DoubleDouble rsqrt(double x);
DoubleDouble rcp(double x);
DoubleDouble erf(double x);
DoubleDouble erfc(double x);
DoubleDouble tgamma(double x);
DoubleDouble lgamma(double x);
DoubleDouble sigmoid(double x);
DoubleDouble gelu(double x);
DoubleDouble silu(double x);
DoubleDouble softplus(double x);

}  // namespace kernel

}  // namespace fp16::detail
