/// Operations on numbers of a format, each rounded once, and comparisons.

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "fp16/arithmetic.h"
#include "fp16/comparison.h"
#include "fp16/exponent.h"
#include "fp16/names.h"
#include "fp16/neighbours.h"
#include "fp16/remainder.h"
#include "tools/python/bindings/arguments.h"
#include "tools/python/bindings/bindings.h"

namespace halflab_python {
namespace {

// Each calls fp16's functions of its name, the one of codes or the vectorised one of arrays where there is one.
constexpr auto add = []<const Format & F>(const auto&... x) -> decltype(fp16::add<F>(x...)) {
  return fp16::add<F>(x...);
};
constexpr auto subtract = []<const Format & F>(const auto&... x) -> decltype(fp16::subtract<F>(x...)) {
  return fp16::subtract<F>(x...);
};
constexpr auto multiply = []<const Format & F>(const auto&... x) -> decltype(fp16::multiply<F>(x...)) {
  return fp16::multiply<F>(x...);
};
constexpr auto divide = []<const Format & F>(const auto&... x) -> decltype(fp16::divide<F>(x...)) {
  return fp16::divide<F>(x...);
};
constexpr auto fma = []<const Format & F>(const auto&... x) -> decltype(fp16::fma<F>(x...)) {
  return fp16::fma<F>(x...);
};
constexpr auto sqrt = []<const Format & F>(const auto&... x) -> decltype(fp16::sqrt<F>(x...)) {
  return fp16::sqrt<F>(x...);
};
constexpr auto remainder = []<const Format & F>(const auto&... x) -> decltype(fp16::remainder<F>(x...)) {
  return fp16::remainder<F>(x...);
};
constexpr auto fmod = []<const Format & F>(const auto&... x) -> decltype(fp16::fmod<F>(x...)) {
  return fp16::fmod<F>(x...);
};
constexpr auto next_up = []<const Format & F>(const auto&... x) -> decltype(fp16::next_up<F>(x...)) {
  return fp16::next_up<F>(x...);
};
constexpr auto next_down = []<const Format & F>(const auto&... x) -> decltype(fp16::next_down<F>(x...)) {
  return fp16::next_down<F>(x...);
};
constexpr auto next_after = []<const Format & F>(const auto&... x) -> decltype(fp16::next_after<F>(x...)) {
  return fp16::next_after<F>(x...);
};

constexpr std::array operand_names{"a", "b", "c"};

template <const Format& F, class Operation, class... Operands>
void operate(const Operation& operation, std::span<Bits<F>> out, const RoundingArguments& rounding,
             const Operands&... operands) {
  const std::vector<std::uint32_t> random = rounding.random_bits(out.size());
  const fp16::ArrayOptions options{.random_bits_32 = random};
  constexpr bool has_bulk = requires {
    operation.template operator()<F>(operands..., out, rounding.attributes, options);
  };
  if constexpr (has_bulk) {
    if (rounding.counts == nullptr) {
      operation.template operator()<F>(operands..., out, rounding.attributes, options);
      return;
    }
  }
  // By way of one type for all operations, as each instance of the loop is long to compile.
  const std::function<fp16::Result<F>(typename Operands::value_type..., const fp16::Attributes&)> scalar =
      [&](const auto&... codes_and_attributes) {
        return operation.template operator()<F>(codes_and_attributes...);
      };
  transform_elements<F>(scalar, out, rounding, options, operands...);
}

/// The operation on each element of the operands; its values.
template <class Operation, std::size_t... operand>
py::object applied(std::string_view name, const Operation& operation, const std::vector<py::object>& operands,
                   const py::object& format, const py::kwargs& attributes, std::index_sequence<operand...>) {
  const RoundingArguments rounding = rounding_arguments(attributes);
  const std::vector<py::array> given = broadcast(operands);
  py::array result;
  with_format(format_argument(format), name, has_arithmetic, [&]<const Format & F>() {
    const std::array codes{exact_codes<F>(given[operand], operand_names[operand])...};
    std::vector<Bits<F>> out(codes[0].size());
    operate<F>(operation, std::span(out), rounding, std::span<const Bits<F>>(codes[operand])...);
    result = decoded<F>(out, given[0]);
  });
  return unwrapped(result);
}

template <std::size_t arity, class Operation>
void define_operation(py::module_& module, const std::string& name, const Operation& operation,
                      const std::string& text, const std::string& example, const std::string& result) {
  constexpr std::make_index_sequence<arity> indices;
  const auto apply = [=](const std::vector<py::object>& operands, const py::object& format,
                         const py::kwargs& attributes) {
    return applied(name, operation, operands, format, attributes, indices);
  };
  const auto define_with = [&](const std::string& operands, const auto& function) {
    define(module, name + "(" + operands + ", format='binary16', **attributes)",
           text + "\n\n>>> halflab." + name + "(" + example + ")\n" + result, function);
  };
  using Value = const py::object&;
  if constexpr (arity == 1) {
    define_with("a", [=](Value a, Value format, const py::kwargs& attributes) {
      return apply({a}, format, attributes);
    });
  } else if constexpr (arity == 2) {
    define_with("a, b", [=](Value a, Value b, Value format, const py::kwargs& attributes) {
      return apply({a, b}, format, attributes);
    });
  } else {
    define_with("a, b, c", [=](Value a, Value b, Value c, Value format, const py::kwargs& attributes) {
      return apply({a, b, c}, format, attributes);
    });
  }
}

py::object scalb(const py::object& a, const py::object& exponent, const py::object& format,
                 const py::kwargs& attributes) {
  const int n = checked_cast<int>("n", exponent, "one integer of 32 bits");
  const auto scaled = [n]<const Format & F>(Bits<F> code, const fp16::Attributes& each) {
    return fp16::scalb<F>(code, n, each);
  };
  return applied("scalb", scaled, {a}, format, attributes, std::make_index_sequence<1>{});
}

struct NamedPredicate {
  std::string_view name;
  fp16::Predicate predicate;
};
constexpr std::array predicates{NamedPredicate{"equal", fp16::Predicate::equal},
                                NamedPredicate{"not_equal", fp16::Predicate::not_equal},
                                NamedPredicate{"less", fp16::Predicate::less},
                                NamedPredicate{"less_equal", fp16::Predicate::less_equal},
                                NamedPredicate{"greater", fp16::Predicate::greater},
                                NamedPredicate{"greater_equal", fp16::Predicate::greater_equal},
                                NamedPredicate{"less_unordered", fp16::Predicate::less_unordered},
                                NamedPredicate{"not_greater", fp16::Predicate::not_greater},
                                NamedPredicate{"greater_unordered", fp16::Predicate::greater_unordered},
                                NamedPredicate{"not_less", fp16::Predicate::not_less},
                                NamedPredicate{"ordered", fp16::Predicate::ordered},
                                NamedPredicate{"unordered", fp16::Predicate::unordered}};

template <class Relation>
py::object related(std::string_view name, const py::object& a, const py::object& b, const py::object& format,
                   const Relation& holds) {
  const std::vector<py::array> given = broadcast({a, b});
  py::array_t<bool> result = empty_like<bool>(given[0]);
  with_format(format_argument(format), name, any_format, [&]<const Format & F>() {
    std::ranges::transform(exact_codes<F>(given[0], "a"), exact_codes<F>(given[1], "b"),
                           result.mutable_data(),
                           [&](Bits<F> x, Bits<F> y) { return holds.template operator()<F>(x, y); });
  });
  return unwrapped(result);
}

py::object compare(const py::object& a, const std::string& name, const py::object& b,
                   const py::object& format) {
  const fp16::Predicate predicate = names::find_by_name(predicates, "predicate", name).predicate;
  return related("compare", a, b, format, [predicate]<const Format & F>(Bits<F> x, Bits<F> y) {
    return fp16::compare_quiet<F>(x, predicate, y).holds;
  });
}

py::object total_order(const py::object& a, const py::object& b, const py::object& format) {
  return related("total_order", a, b, format,
                 []<const Format & F>(Bits<F> x, Bits<F> y) { return fp16::total_order<F>(x, y); });
}

}  // namespace

void bind_operations(py::module_& module) {
  define_operation<2>(module, "add", add,
                      "a + b, rounded once. An exact zero sum of opposite signs is +0, toward_negative -0.",
                      "[2048.0, 4.0], 1.0", "array([2048.,    5.])");
  define_operation<2>(module, "subtract", subtract, "a - b, rounded once.", "[2048.0, 4.0], 0.5",
                      "array([2048. ,    3.5])");
  define_operation<2>(module, "multiply", multiply, "a * b, rounded once. infinity * 0 is invalid: a NaN.",
                      "[0.5, 300.0], 300.0", "array([150.,  inf])");
  define_operation<2>(
      module, "divide", divide,
      "a / b, rounded once. 0 / 0 and infinity / infinity are invalid, finite / 0 is an infinity.",
      "[1.0, 2.0], 3.0", "array([0.33325195, 0.66650391])");
  define_operation<3>(module, "fma", fma, "a * b + c with one rounding.", "[1.0, 2.0], 3.0, 4.0",
                      "array([ 7., 10.])");
  define_operation<1>(module, "sqrt", sqrt,
                      "The square root, rounded once. sqrt(-0) is -0, of other negative numbers a NaN.",
                      "[1.0, 2.0]", "array([1.       , 1.4140625])");
  define_operation<2>(module, "remainder", remainder,
                      "a - b * n for the integer n nearest to a / b, the even one of two (IEEE 754). Exact.",
                      "[5.0, 7.0], 3.0", "array([-1.,  1.])");
  define_operation<2>(module, "fmod", fmod, "a - b * n with n = a / b rounded toward zero (C's fmod). Exact.",
                      "[5.0, -7.0], 3.0", "array([ 2., -1.])");
  define_operation<1>(module, "next_up", next_up,
                      "The least number larger than a; of the largest an infinity where there is one.",
                      "[2048.0, 65504.0]", "array([2050.,   inf])");
  define_operation<1>(module, "next_down", next_down, "The greatest number smaller than a.",
                      "[4096.0, 2048.0]", "array([4094., 2047.])");
  define_operation<2>(module, "next_after", next_after,
                      "The neighbour of a on the side of b; b where they are equal.",
                      "[2048.0, 4096.0], 3000.0", "array([2050., 4094.])");

  define(module, "scalb(a, n, format='binary16', **attributes)",
         "a * 2^n, rounded once, for one integer n.\n\n"
         ">>> halflab.scalb([1.0, 1.5], 3)\n"
         "array([ 8., 12.])",
         scalb);
  define(module, "compare(a, predicate, b, format='binary16')",
         "Whether a predicate of halflab.predicates holds (IEEE 754-2019 tables 5.1 to 5.3), as bool. -0 "
         "equals\n"
         "+0; a NaN is unordered with everything.\n\n"
         ">>> halflab.compare([1.0, 3.0], 'less', 2.0)\n"
         "array([ True, False])",
         compare);
  define(module, "total_order(a, b, format='binary16')",
         "Whether a comes before b or is the same code, NaNs and signs of zeros included (IEEE 754-2019\n"
         "clause 5.10).\n\n"
         ">>> halflab.total_order([-0.0, 0.0], -0.0)\n"
         "array([ True, False])",
         total_order);
  py::list names;
  for (const NamedPredicate& row : predicates) names.append(row.name);
  module.attr("predicates") = py::tuple(names);
}

}  // namespace halflab_python
