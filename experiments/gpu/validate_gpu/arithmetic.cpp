#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "experiments/gpu/validate_gpu/operation_list.h"
#include "fp16/math.h"
#include "fp16/sign.h"

namespace experiments::validate_gpu {
namespace {

namespace ops = fp16::ops;

/// Turns an operation on doubles into one on codes, rounded once.
template <auto operation>
std::uint64_t unary_oracle(const Operands& operands) {
  return encode(operation(decode(static_cast<Code>(operands.a))));
}
template <auto operation>
std::uint64_t binary_oracle(const Operands& operands) {
  return encode(operation(decode(static_cast<Code>(operands.a)), decode(static_cast<Code>(operands.b))));
}
template <auto operation>
std::uint64_t ternary_oracle(const Operands& operands) {
  return encode(operation(decode(static_cast<Code>(operands.a)), decode(static_cast<Code>(operands.b)),
                          decode(static_cast<Code>(operands.c))));
}

/// Clamped to [0, 1] after rounding; a NaN becomes +0.
template <Function function>
std::uint64_t saturating_oracle(const Operands& operands) {
  const double result = decode(static_cast<Code>(function(operands)));
  return encode(result > 0 ? std::fmin(result, 1) : 0);
}

/// A negative result becomes +0.
template <Function function>
std::uint64_t rectified_oracle(const Operands& operands) {
  const double result = decode(static_cast<Code>(function(operands)));
  return encode(result <= 0 ? 0 : result);
}

constexpr auto add_oracle = binary_oracle<[](double a, double b) { return a + b; }>;
constexpr auto subtract_oracle = binary_oracle<[](double a, double b) { return a - b; }>;
constexpr auto multiply_oracle = binary_oracle<[](double a, double b) { return a * b; }>;
constexpr auto divide_oracle = binary_oracle<[](double a, double b) { return a / b; }>;
constexpr auto fused_oracle = ternary_oracle<[](double a, double b, double c) { return a * b + c; }>;

void append_sums_and_products(Operations& rows) {
  const auto append = [&](std::string name, Function software, Function oracle,
                          const std::vector<Subject>& subjects) {
    rows.push_back({.name = std::move(name),
                    .family = "arithmetic",
                    .domain = &domain_called("pairs"),
                    .software = software,
                    .oracle = oracle,
                    .subjects = subjects});
  };
  append("hadd", software<ops::Add>, add_oracle, everywhere);
  append("hsub", software<ops::Subtract>, subtract_oracle, everywhere);
  append("hmul", software<ops::Multiply>, multiply_oracle, everywhere);
  append("hdiv", software<ops::Divide>, divide_oracle, everywhere);
  append("hadd_rn", software<ops::Add>, add_oracle, native);
  append("hsub_rn", software<ops::Subtract>, subtract_oracle, native);
  append("hmul_rn", software<ops::Multiply>, multiply_oracle, native);
  append("hadd_sat", software<ops::Saturated<ops::Add>>, saturating_oracle<add_oracle>, everywhere);
  append("hsub_sat", software<ops::Saturated<ops::Subtract>>, saturating_oracle<subtract_oracle>, everywhere);
  append("hmul_sat", software<ops::Saturated<ops::Multiply>>, saturating_oracle<multiply_oracle>, everywhere);
}

void append_fused(Operations& rows) {
  const auto append = [&](std::string name, Function software, Function oracle) {
    rows.push_back({.name = std::move(name),
                    .family = "fused multiply-add",
                    .domain = &domain_called("triples"),
                    .software = software,
                    .oracle = oracle,
                    .subjects = not_in_header});
  };
  append("hfma", software<ops::FusedMultiplyAdd>, fused_oracle);
  append("hfma_sat", software<ops::Saturated<ops::FusedMultiplyAdd>>, saturating_oracle<fused_oracle>);
  append("hfma_relu", software<ops::Relu<ops::FusedMultiplyAdd>>, rectified_oracle<fused_oracle>);
  rows.back().has_canonical_nans = true;
}

struct Comparison {
  const char* name;
  Function software, oracle;
};

template <class Functor, auto oracle_holds>
constexpr Comparison comparison(const char* name) {
  return {
      .name = name, .software = software<Functor>, .oracle = [](const Operands& operands) -> std::uint64_t {
        return oracle_holds(decode(static_cast<Code>(operands.a)), decode(static_cast<Code>(operands.b)));
      }};
}

const std::array comparisons{
    comparison<ops::Equal, ([](double a, double b) { return a == b; })>("eq"),
    comparison<ops::NotEqualOrdered, ([](double a, double b) { return a < b || a > b; })>("ne"),
    comparison<ops::Less, ([](double a, double b) { return a < b; })>("lt"),
    comparison<ops::LessEqual, ([](double a, double b) { return a <= b; })>("le"),
    comparison<ops::Greater, ([](double a, double b) { return a > b; })>("gt"),
    comparison<ops::GreaterEqual, ([](double a, double b) { return a >= b; })>("ge"),
    comparison<ops::EqualUnordered, ([](double a, double b) { return !(a < b || a > b); })>("equ"),
    comparison<ops::NotEqualUnordered, ([](double a, double b) { return a != b; })>("neu"),
    comparison<ops::LessUnordered, ([](double a, double b) { return !(a >= b); })>("ltu"),
    comparison<ops::LessEqualUnordered, ([](double a, double b) { return !(a > b); })>("leu"),
    comparison<ops::GreaterUnordered, ([](double a, double b) { return !(a <= b); })>("gtu"),
    comparison<ops::GreaterEqualUnordered, ([](double a, double b) { return !(a < b); })>("geu")};

void append_comparisons(Operations& rows) {
  for (const auto& [name, software, oracle] : comparisons) {
    const Operation row{.name = fmt::format("h{}", name),
                        .family = "comparison",
                        .domain = &domain_called("pairs"),
                        .software = software,
                        .oracle = oracle,
                        .subjects = everywhere,
                        .lane = LaneResult::one,
                        .result = truth};
    rows.push_back(row);
    const auto append_packed = [&](std::string packed_name, LaneResult lane) {
      rows.push_back(row);
      rows.back().name = std::move(packed_name);
      rows.back().subjects = packed_forms;
      rows.back().lane = lane;
    };
    append_packed(fmt::format("h{}_mask", name), LaneResult::mask);
    append_packed(fmt::format("hb{}", name), LaneResult::all);
  }
}

/// A NaN that is missing data, or that makes the result one; -0 is below +0.
template <bool larger, bool nan_propagates>
std::uint64_t extremum_oracle(const Operands& operands) {
  const double a = decode(static_cast<Code>(operands.a)), b = decode(static_cast<Code>(operands.b));
  if (std::isnan(a) || std::isnan(b))
    return nan_propagates ? double_oracle::canonical_nan : encode(std::isnan(a) ? b : a);
  const bool a_is_smaller = a == b ? std::signbit(a) : a < b;
  return encode(a_is_smaller != larger ? a : b);
}

void append_extrema(Operations& rows) {
  const auto append = [&](std::string name, Function software, Function oracle) {
    rows.push_back({.name = std::move(name),
                    .family = "minimum, maximum",
                    .domain = &domain_called("pairs"),
                    .software = software,
                    .oracle = oracle,
                    .subjects = everywhere,
                    .has_canonical_nans = true});
  };
  append("hmax", software<ops::MaximumNumber>, extremum_oracle<true, false>);
  append("hmin", software<ops::MinimumNumber>, extremum_oracle<false, false>);
  append("hmax_nan", software<ops::Maximum>, extremum_oracle<true, true>);
  append("hmin_nan", software<ops::Minimum>, extremum_oracle<false, true>);
}

void append_signs(Operations& rows) {
  const auto append = [&](std::string name, Function software, Function oracle,
                          const std::vector<Subject>& subjects, LaneResult lane = LaneResult::code) {
    rows.push_back({.name = std::move(name),
                    .family = "sign and class",
                    .domain = &domain_called("codes"),
                    .software = software,
                    .oracle = oracle,
                    .subjects = subjects,
                    .lane = lane});
  };
  // The software half's own, not ops::Negate and Absolute: what CUDA does to NaNs is a documented deviation.
  append("hneg", unary<[](Code a) { return fp16::negate<binary16>(a); }>,
         unary<[](Code a) -> Code { return std::isnan(decode(a)) ? a ^ 0x8000 : encode(-decode(a)); }>,
         everywhere);
  append(
      "habs", unary<[](Code a) { return fp16::abs<binary16>(a); }>,
      unary<[](Code a) -> Code { return std::isnan(decode(a)) ? a & 0x7FFF : encode(std::fabs(decode(a))); }>,
      everywhere);
  append("hisnan", software<ops::IsNan>, unary<[](Code a) { return std::isnan(decode(a)); }>, everywhere,
         LaneResult::one);
  rows.back().result = truth;
  append("hisinf", software<ops::InfinitySign>, unary<[](Code a) -> std::uint32_t {
           if (!std::isinf(decode(a))) return 0;
           return static_cast<std::uint32_t>(decode(a) > 0 ? 1 : -1);
         }>,
         scalars);
  rows.back().result = {NumberKind::signed_integer, 32};
}

}  // namespace

void append_arithmetic(Operations& rows) {
  append_sums_and_products(rows);
  append_fused(rows);
  append_comparisons(rows);
  append_extrema(rows);
  append_signs(rows);
}

void append_functions(Operations& rows) {
  const auto append = [&](std::string name, Function software, Function oracle) {
    rows.push_back({.name = std::move(name),
                    .family = "functions",
                    .domain = &domain_called("codes"),
                    .software = software,
                    .oracle = oracle,
                    .subjects = oracle != nullptr ? not_in_header : gpu_only});
  };
  append("hsqrt", software<ops::SquareRoot>, unary_oracle<[](double a) { return std::sqrt(a); }>);
  append("hrcp", software<ops::Reciprocal>, unary_oracle<[](double a) { return 1 / a; }>);
  append("hrsqrt", unary<[](Code a) { return fp16::math::rsqrt(a, nvidia()).bits; }>, nullptr);
  append("hexp", unary<[](Code a) { return fp16::math::exp(a, nvidia()).bits; }>, nullptr);
  append("hexp2", unary<[](Code a) { return fp16::math::exp2(a, nvidia()).bits; }>, nullptr);
  append("hexp10", unary<[](Code a) { return fp16::math::exp10(a, nvidia()).bits; }>, nullptr);
  append("hlog", unary<[](Code a) { return fp16::math::log(a, nvidia()).bits; }>, nullptr);
  append("hlog2", unary<[](Code a) { return fp16::math::log2(a, nvidia()).bits; }>, nullptr);
  append("hlog10", unary<[](Code a) { return fp16::math::log10(a, nvidia()).bits; }>, nullptr);
  append("hsin", unary<[](Code a) { return fp16::math::sin(a, nvidia()).bits; }>, nullptr);
  append("hcos", unary<[](Code a) { return fp16::math::cos(a, nvidia()).bits; }>, nullptr);
  append("htanh", unary<[](Code a) { return fp16::math::tanh(a, nvidia()).bits; }>, nullptr);
  append("htanh_approx", unary<[](Code a) { return fp16::math::tanh(a, nvidia()).bits; }>, nullptr);
}

}  // namespace experiments::validate_gpu
