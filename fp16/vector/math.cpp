#include "fp16/math.h"

#include <array>
#include <limits>
#include <memory>
#include <stdexcept>

#include "fp16/codec.h"
#include "fp16/vector/environment.h"
#include "fp16/vector/math_kernels.h"

namespace fp16 {

Result<binary16> detail::round_from_odd(std::uint32_t odd, bool finite_operands,
                                        const Attributes& attributes) {
  if (is_nan<binary32>(odd)) return invalid_operation<binary16>(attributes);
  if (is_infinite<binary32>(odd))
    return infinite_result<binary16>(is_negative<binary32>(odd), attributes,
                                     {.divide_by_zero = finite_operands});
  return round_pack<binary16>(unpack<binary32, std::uint64_t>(odd), attributes);
}

namespace math {
namespace {

namespace kernel = detail::kernel;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The table that `slot` points to, made by `fill` if there is none yet. When threads race, the first to
/// finish wins; tables are alike and live to the end of the program.
template <typename Table, typename Fill>
const Table& table_in(std::atomic<const Table*>& slot, Fill fill) {
  if (const Table* table = slot.load(std::memory_order_acquire)) return *table;
  auto filled = std::make_unique<Table>();
  detail::in_default_environment([&] {
    for (std::size_t code = 0; code < code_count; ++code)
      (*filled)[code] = fill(static_cast<std::uint16_t>(code));
  });
  const Table* present = nullptr;
  if (!slot.compare_exchange_strong(present, filled.get(), std::memory_order_acq_rel)) return *present;
  return *filled.release();
}

detail::DoubleDouble exact_value(const UnaryFunction::Definition& function, std::uint16_t a) {
  if (is_nan<binary16>(a)) return nan;
  if (is_infinite<binary16>(a))
    return is_negative<binary16>(a) ? function.at_negative_infinity : function.at_positive_infinity;
  return function.kernel(decode<binary16>(a));
}

}  // namespace

Result<binary16> UnaryFunction::operator()(Code<binary16> a, const Attributes& attributes) const {
  a = read_operand<binary16>(a, attributes);
  if (is_nan<binary16>(a)) return propagate_nan<binary16>(attributes, a);
  return detail::round_from_odd(to_odd()[a], is_finite<binary16>(a), attributes);
}

const ToOddTable& UnaryFunction::to_odd() const {
  return table_in(to_odd_, [&](std::uint16_t a) {
    return detail::round_to_odd(exact_value(definition_, a), detail::exactness_threshold);
  });
}

const HalfTable& UnaryFunction::results(Rounding rounding) const {
  const auto direction = static_cast<std::size_t>(rounding);
  if (direction >= tabulated_directions)
    throw std::invalid_argument("rounding: is stochastic; a table of results needs another direction");
  return table_in(results_[direction],
                  [&](std::uint16_t a) { return (*this)(a, {.rounding = rounding}).bits; });
}

void apply(const UnaryFunction& function, std::span<const std::uint16_t> in, std::span<std::uint16_t> out,
           const Attributes& attributes, const ArrayOptions& options) {
  const bool only_direction =
      attributes == Attributes{.rounding = attributes.rounding, .random_bits = attributes.random_bits};
  if (!only_direction || attributes.rounding == Rounding::stochastic || options.counts != nullptr ||
      options.flags != nullptr) {
    transform<binary16>(function, out, attributes, options, in);
    return;
  }
  detail::require_length("out", out.size(), in.size());
  detail::require_apart(out, options, in);
  const HalfTable& results = function.results(attributes.rounding);
  detail::for_each_part(in.size(), options.threads, detail::block_size,
                        [&](std::size_t begin, std::size_t end) {
                          for (std::size_t i = begin; i < end; ++i) out[i] = results[in[i]];
                        });
}

void apply(PairFunction function, std::span<const std::uint16_t> a, std::span<const std::uint16_t> b,
           std::span<std::uint16_t> out, const Attributes& attributes, const ArrayOptions& options) {
  transform<binary16>(function, out, attributes, options, a, b);
}

// Value at -inf, value at +inf.
constinit const UnaryFunction exp{{"exp", kernel::exp, 0, infinity}};
constinit const UnaryFunction exp2{{"exp2", kernel::exp2, 0, infinity}};
constinit const UnaryFunction exp10{{"exp10", kernel::exp10, 0, infinity}};
constinit const UnaryFunction expm1{{"expm1", kernel::expm1, -1, infinity}};
constinit const UnaryFunction log{{"log", kernel::log, nan, infinity}};
constinit const UnaryFunction log2{{"log2", kernel::log2, nan, infinity}};
constinit const UnaryFunction log10{{"log10", kernel::log10, nan, infinity}};
constinit const UnaryFunction log1p{{"log1p", kernel::log1p, nan, infinity}};
constinit const UnaryFunction sin{{"sin", kernel::sin, nan, nan}};
constinit const UnaryFunction cos{{"cos", kernel::cos, nan, nan}};
constinit const UnaryFunction tan{{"tan", kernel::tan, nan, nan}};
constinit const UnaryFunction asin{{"asin", kernel::asin, nan, nan}};
constinit const UnaryFunction acos{{"acos", kernel::acos, nan, nan}};
constinit const UnaryFunction atan{{"atan", kernel::atan, -detail::half_pi.high, detail::half_pi.high}};
constinit const UnaryFunction sinh{{"sinh", kernel::sinh, -infinity, infinity}};
constinit const UnaryFunction cosh{{"cosh", kernel::cosh, infinity, infinity}};
constinit const UnaryFunction tanh{{"tanh", kernel::tanh, -1, 1}};
constinit const UnaryFunction asinh{{"asinh", kernel::asinh, -infinity, infinity}};
constinit const UnaryFunction acosh{{"acosh", kernel::acosh, nan, infinity}};
constinit const UnaryFunction atanh{{"atanh", kernel::atanh, nan, nan}};
constinit const UnaryFunction cbrt{{"cbrt", kernel::cbrt, -infinity, infinity}};
constinit const UnaryFunction rsqrt{{"rsqrt", kernel::rsqrt, nan, 0}};
constinit const UnaryFunction rcp{{"rcp", kernel::rcp, -0.0, 0}};
constinit const UnaryFunction erf{{"erf", kernel::erf, -1, 1}};
constinit const UnaryFunction erfc{{"erfc", kernel::erfc, 2, 0}};
constinit const UnaryFunction tgamma{{"tgamma", kernel::tgamma, nan, infinity}};
constinit const UnaryFunction lgamma{{"lgamma", kernel::lgamma, infinity, infinity}};
constinit const UnaryFunction sigmoid{{"sigmoid", kernel::sigmoid, 0, 1}};
constinit const UnaryFunction gelu{{"gelu", kernel::gelu, -0.0, infinity}};
constinit const UnaryFunction silu{{"silu", kernel::silu, -0.0, infinity}};
constinit const UnaryFunction softplus{{"softplus", kernel::softplus, 0, infinity}};

std::span<const UnaryFunction* const> unary_functions() {
  static constexpr std::array functions{&exp,  &exp2,   &exp10,  &expm1,   &log,  &log2,  &log10,   &log1p,
                                        &sin,  &cos,    &tan,    &asin,    &acos, &atan,  &sinh,    &cosh,
                                        &tanh, &asinh,  &acosh,  &atanh,   &cbrt, &rsqrt, &rcp,     &erf,
                                        &erfc, &tgamma, &lgamma, &sigmoid, &gelu, &silu,  &softplus};
  return functions;
}

}  // namespace math
}  // namespace fp16
