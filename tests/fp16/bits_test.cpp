#include "fp16/bits.h"

#include <concepts>
#include <cstdint>
#include <span>

#include "fp16/arithmetic.h"
#include "fp16/block.h"
#include "fp16/classification.h"
#include "fp16/codec.h"
#include "fp16/comparison.h"
#include "fp16/exact_accumulator.h"
#include "fp16/exponent.h"
#include "fp16/half.h"
#include "fp16/integral.h"
#include "fp16/math.h"
#include "fp16/min_max.h"
#include "fp16/mma.h"
#include "fp16/neighbours.h"
#include "fp16/remainder.h"
#include "fp16/sign.h"
#include "fp16/text.h"
#include "fp16/unpacked.h"

namespace fp16 {
namespace {

template <typename Function>
constexpr bool takes_codes_alone(Function) {
  constexpr bool codes = std::invocable<Function, std::uint16_t> && std::invocable<Function, int>;
  constexpr bool values = std::invocable<Function, double> || std::invocable<Function, float> ||
                          std::invocable<Function, long double> || std::invocable<Function, half>;
#ifdef FP16_HAS_NATIVE_HALF
  return codes && !values && !std::invocable<Function, _Float16>;
#else
  return codes && !values;
#endif
}

#define TAKES_CODES_ALONE(...) \
  static_assert(takes_codes_alone([](auto a) requires requires { __VA_ARGS__; } {}))

TAKES_CODES_ALONE(magnitude<binary16>(a));
TAKES_CODES_ALONE(with_sign<binary16>(a, true));
TAKES_CODES_ALONE(negate<binary16>(a));
TAKES_CODES_ALONE(is_nan<binary16>(a));
TAKES_CODES_ALONE(is_infinite<binary16>(a));
TAKES_CODES_ALONE(is_finite<binary16>(a));
TAKES_CODES_ALONE(is_negative<binary16>(a));
TAKES_CODES_ALONE(is_zero<binary16>(a));
TAKES_CODES_ALONE(is_subnormal<binary16>(a));
TAKES_CODES_ALONE(is_signalling_nan<binary16>(a));
TAKES_CODES_ALONE(is_normal<binary16>(a));
TAKES_CODES_ALONE(classify<binary16>(a));
TAKES_CODES_ALONE(abs<binary16>(a));
TAKES_CODES_ALONE(copy_sign<binary16>(a, 1));
TAKES_CODES_ALONE(copy_sign<binary16>(1, a));
TAKES_CODES_ALONE(unpack<binary16>(a));
TAKES_CODES_ALONE(read_operand<binary16>(a, Attributes{}));
TAKES_CODES_ALONE(propagate_nan<binary16>(Attributes{}, a));
TAKES_CODES_ALONE(propagate_nan<binary16>(Attributes{}, 1, a));
TAKES_CODES_ALONE(propagate_nan<binary16>(Attributes{}, 1, 1, a));

TAKES_CODES_ALONE(add<binary16>(a, 1));
TAKES_CODES_ALONE(add<binary16>(1, a));
TAKES_CODES_ALONE(subtract<binary16>(a, a));
TAKES_CODES_ALONE(multiply<binary16>(a, a));
TAKES_CODES_ALONE(divide<binary16>(a, a));
TAKES_CODES_ALONE(sqrt<binary16>(a));
TAKES_CODES_ALONE(fma<binary16>(1, 1, a));
TAKES_CODES_ALONE(remainder<binary16>(a, a));
TAKES_CODES_ALONE(fmod<binary16>(a, a));

TAKES_CODES_ALONE(ExactAccumulator<binary16>().add(a));
TAKES_CODES_ALONE(ExactAccumulator<binary16>().add_product(a, 1));
TAKES_CODES_ALONE(ExactAccumulator<binary16>().add_product(1, a));
TAKES_CODES_ALONE(mma_step<binary16>(volta, {}, {}, a));
TAKES_CODES_ALONE(mma_dot<binary16>(volta, {}, {}, a));

TAKES_CODES_ALONE(decode<binary16>(a));
TAKES_CODES_ALONE(convert<binary32, binary16>(a));
TAKES_CODES_ALONE(half_bits_to_float(a));
TAKES_CODES_ALONE(half::from_bits(a));
TAKES_CODES_ALONE(encode_element<mxfp4>(1.0f, a));
TAKES_CODES_ALONE(encode_element<nvfp4>(1.0f, a));
TAKES_CODES_ALONE(decode_element<mxfp4>(a, 1));
TAKES_CODES_ALONE(decode_element<mxfp4>(1, a));
TAKES_CODES_ALONE(decode_element<nvfp4>(a, 1));
TAKES_CODES_ALONE(decode_element<nvfp4>(1, a));

TAKES_CODES_ALONE(relation<binary16>(a, a));
TAKES_CODES_ALONE(ordinal<binary16>(a));
TAKES_CODES_ALONE(compare<binary16>(a, a));
TAKES_CODES_ALONE(compare_quiet<binary16>(a, Predicate::less, a));
TAKES_CODES_ALONE(compare_signalling<binary16>(a, Predicate::less, a));
TAKES_CODES_ALONE(total_order<binary16>(a, a));
TAKES_CODES_ALONE(total_order_mag<binary16>(a, a));
TAKES_CODES_ALONE(minimum<binary16>(a, a));
TAKES_CODES_ALONE(maximum<binary16>(a, a));
TAKES_CODES_ALONE(minimum_number<binary16>(a, a));
TAKES_CODES_ALONE(maximum_number<binary16>(a, a));
TAKES_CODES_ALONE(min_num<binary16>(a, a));
TAKES_CODES_ALONE(max_num<binary16>(a, a));
TAKES_CODES_ALONE(minimum_magnitude<binary16>(a, a));
TAKES_CODES_ALONE(maximum_magnitude<binary16>(a, a));
TAKES_CODES_ALONE(minimum_magnitude_number<binary16>(a, a));
TAKES_CODES_ALONE(maximum_magnitude_number<binary16>(a, a));
TAKES_CODES_ALONE(min_num_mag<binary16>(a, a));
TAKES_CODES_ALONE(max_num_mag<binary16>(a, a));

TAKES_CODES_ALONE(round_to_integral<binary16>(a));
TAKES_CODES_ALONE(round_to_integral_exact<binary16>(a));
TAKES_CODES_ALONE(to_integer<int, binary16>(a));
TAKES_CODES_ALONE(to_integer_exact<int, binary16>(a));
TAKES_CODES_ALONE(modf<binary16>(a));
TAKES_CODES_ALONE(scalb<binary16>(a, 1));
TAKES_CODES_ALONE(ilogb<binary16>(a));
TAKES_CODES_ALONE(logb<binary16>(a));
TAKES_CODES_ALONE(frexp<binary16>(a));
TAKES_CODES_ALONE(next_up<binary16>(a));
TAKES_CODES_ALONE(next_down<binary16>(a));
TAKES_CODES_ALONE(next_after<binary16>(a, a));
TAKES_CODES_ALONE(ulp_distance<binary16>(a, a));

TAKES_CODES_ALONE(to_shortest<binary16>(a));
TAKES_CODES_ALONE(to_exact<binary16>(a));
TAKES_CODES_ALONE(to_hex<binary16>(a));
TAKES_CODES_ALONE(to_fields<binary16>(a));

TAKES_CODES_ALONE(math::pow(a, a));
TAKES_CODES_ALONE(math::hypot(a, 1));
TAKES_CODES_ALONE(math::atan2(1, a));

// The functions of math.h take a half too, for its rounded result.
static_assert(std::invocable<const math::UnaryFunction&, int>);
static_assert(!std::invocable<const math::UnaryFunction&, double>);

}  // namespace
}  // namespace fp16
