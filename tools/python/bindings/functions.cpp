/// The correctly rounded functions of binary16, in the submodule `math`.

#include <array>
#include <string>

#include "fp16/math.h"
#include "tools/python/bindings/arguments.h"
#include "tools/python/bindings/bindings.h"

namespace halflab_python {
namespace {

using fp16::binary16;
using fp16::math::UnaryFunction;
using Codes = std::span<const std::uint16_t>;

py::object unary(const UnaryFunction& function, const py::object& x, const py::kwargs& attributes) {
  const RoundingArguments rounding = rounding_arguments(attributes);
  const py::array given = reals(x);
  const std::vector<std::uint16_t> in = exact_codes<binary16>(given, "x");
  const std::vector<std::uint32_t> random = rounding.random_bits(in.size());
  const fp16::ArrayOptions options{.random_bits_32 = random};
  std::vector<std::uint16_t> out(in.size());
  if (rounding.counts == nullptr) {
    fp16::math::apply(function, in, out, rounding.attributes, options);
  } else {
    transform_elements<binary16>(function, std::span(out), rounding, options, Codes(in));
  }
  return unwrapped(decoded<binary16>(out, given));
}

py::object binary(fp16::math::PairFunction function, const py::object& a, const py::object& b,
                  const py::kwargs& attributes) {
  const RoundingArguments rounding = rounding_arguments(attributes);
  const std::vector<py::array> given = broadcast({a, b});
  const std::vector<std::uint16_t> first = exact_codes<binary16>(given[0], "the first operand");
  const std::vector<std::uint16_t> second = exact_codes<binary16>(given[1], "the second operand");
  const std::vector<std::uint32_t> random = rounding.random_bits(first.size());
  std::vector<std::uint16_t> out(first.size());
  transform_elements<binary16>(function, std::span(out), rounding, {.random_bits_32 = random}, Codes(first),
                               Codes(second));
  return unwrapped(decoded<binary16>(out, given[0]));
}

struct Pair {
  const char* name;
  const char* operands[2];
  fp16::math::PairFunction function;
  const char* text;
};
constexpr std::array pairs{
    Pair{"pow", {"x", "y"}, fp16::math::pow, "x^y."},
    Pair{"hypot", {"x", "y"}, fp16::math::hypot, "sqrt(x^2 + y^2)."},
    Pair{"atan2", {"y", "x"}, fp16::math::atan2, "The angle of the point (x, y), in radians."}};

}  // namespace

void bind_functions(py::module_& module) {
  py::module_ math = module.def_submodule("math",
                                          "Correctly rounded functions of binary16, in every direction. "
                                          "Operands must be numbers of binary16; results\n"
                                          "are float64. Special values as in C23: outside the domain a NaN, "
                                          "at a pole an infinity. Attributes as in\n"
                                          "halflab. `functions` has the names of those of one argument.");
  py::list names;
  for (const UnaryFunction* function : fp16::math::unary_functions()) {
    const std::string name(function->name());
    define(math, name + "(x, **attributes)",
           name + " of binary16 numbers, correctly rounded.\n\n>>> y = halflab.math." + name + "([0.5, 1.0])",
           [function](const py::object& x, const py::kwargs& attributes) {
             return unary(*function, x, attributes);
           });
    names.append(name);
  }
  math.attr("functions") = py::tuple(names);
  for (const Pair& pair : pairs) {
    const std::string arguments = std::string("(") + pair.operands[0] + ", " + pair.operands[1];
    define(
        math, pair.name + arguments + ", **attributes)",
        std::string(pair.text) + " Correctly rounded.\n\n>>> z = halflab.math." + pair.name +
            "(3.0, [0.5, 2.0])",
        [function = pair.function](const py::object& a, const py::object& b, const py::kwargs& attributes) {
          return binary(function, a, b, attributes);
        });
  }
}

}  // namespace halflab_python
