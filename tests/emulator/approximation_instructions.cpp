/// The instructions that PTX defines by a maximum error: here the host's binary64 result, rounded once.

#include <cmath>

#include "tests/emulator/builder.h"
#include "tests/emulator/select.h"

namespace emulator {

namespace {

double reciprocal_square_root(double a) {
  return 1 / std::sqrt(a);
}
double sine(double a) {
  return std::sin(a);
}
double cosine(double a) {
  return std::cos(a);
}
double power_of_two(double a) {
  return std::exp2(a);
}
double logarithm(double a) {
  return std::log2(a);
}
double hyperbolic_tangent(double a) {
  return std::tanh(a);
}

template <double (*function)(double), typename Float>
Float approximate(const Modifiers& modifiers, Float a) {
  return finish(modifiers,
                from_double<Float>(function(to_double(flush(modifiers, a))), Rounding::nearest_even));
}
template <double (*function)(double)>
Half2 approximate_packed(const Modifiers& modifiers, Half2 a) {
  return {approximate<function>(modifiers, Half{a.low}).code,
          approximate<function>(modifiers, Half{a.high}).code};
}

template <double (*function)(double)>
Handler build_approximation(Builder& builder) {
  builder.opcode.ignore({"approx"});
  builder.take_flags();
  const Type type = builder.opcode.take_type();
  builder.operands({type, type});
  switch (type) {
    case Type::f16:
      return map<&approximate<function, Half>>;
    case Type::f16x2:
      return map<&approximate_packed<function>>;
    case Type::f32:
      return map<&approximate<function, float>>;
    case Type::f64:
      return map<&approximate<function, double>>;
    default:
      builder.refuse("the emulator does not know this function for this type");
  }
}

constexpr Row rows[] = {
    {"rsqrt", any_type, build_approximation<reciprocal_square_root>},
    {"sin", any_type, build_approximation<sine>},
    {"cos", any_type, build_approximation<cosine>},
    {"ex2", any_type, build_approximation<power_of_two>},
    {"lg2", any_type, build_approximation<logarithm>},
    {"tanh", any_type, build_approximation<hyperbolic_tangent>},
};

}  // namespace

std::span<const Row> approximation_rows() {
  return rows;
}

}  // namespace emulator
