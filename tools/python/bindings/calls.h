#pragma once
/// Functions of the module, bound by the signatures that help() shows of them. A call that does not fit one
/// is an error of one line, with an example.

#include <pybind11/stl.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "fp16/vector/environment.h"

namespace halflab_python {

namespace py = pybind11;

/// A text in one line, cut to about 80 characters: what an error shows of a value that may be large.
std::string shortened(const py::str& text);
/// The repr() of a value, shortened.
std::string shown(const py::handle& value);

/// A bool of Python or of numpy; nothing else stands for a truth value.
bool is_truth_value(const py::handle& value);

/// A str that may be a name, and that an error may show whole: printable, and no longer than any name is.
bool is_name(const py::handle& value);

/// A name with options behind colons, "dynamic:growth_interval=20". Functions take it by value.
struct Spec {
  std::string text;
};
/// A str that may be a Spec: printable, at most as long as any with all options, each part as long as a name.
bool is_spec(const py::handle& value);

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

/// What an argument of type T may be, for the error of one that is not.
template <class T>
std::string allowed_values() {
  if constexpr (std::same_as<T, std::string>) {
    return "a name";
  } else if constexpr (std::same_as<T, Spec>) {
    return "a name, options behind colons";
  } else if constexpr (std::same_as<T, bool>) {
    return "True, False";
  } else if constexpr (std::same_as<T, double>) {
    return "a number";
  } else if constexpr (std::integral<T>) {
    return "a whole number";
  } else if constexpr (std::same_as<T, py::dict>) {
    return "a dict";
  } else if constexpr (is_optional<T>) {
    return allowed_values<typename T::value_type>() + ", None";
  } else if constexpr (std::is_pointer_v<T>) {
    return allowed_values<std::remove_cv_t<std::remove_pointer_t<T>>>() + ", None";
  } else {
    return "a halflab." + py::cast<std::string>(py::type::of<T>().attr("__name__"));
  }
}

/// Whether `value` may be cast to a T: pybind11 itself takes more for names, truth values and Python's own
/// classes.
template <class T>
bool is_a(const py::handle& value) {
  if constexpr (std::same_as<T, std::string>) {
    return is_name(value);
  } else if constexpr (std::same_as<T, Spec>) {
    return is_spec(value);
  } else if constexpr (std::same_as<T, bool>) {
    return is_truth_value(value);
  } else if constexpr (std::derived_from<T, py::object>) {
    return py::isinstance<T>(value);
  } else {
    return true;  // the cast decides
  }
}

/// `value` as a T; the error says what `name` allows, `allowed`.
template <class T>
T checked_cast(std::string_view name, const py::handle& value, std::string_view allowed) {
  if constexpr (is_optional<T>) {
    if (value.is_none()) return std::nullopt;
    return checked_cast<typename T::value_type>(name, value, allowed);
  } else {
    try {
      if constexpr (std::same_as<T, Spec>) {
        if (is_a<T>(value)) return Spec{py::cast<std::string>(value)};
      } else {
        if (is_a<T>(value)) return py::cast<T>(value);
      }
    } catch (const py::cast_error&) {  // said below
    }
    throw std::invalid_argument(std::string(name) + " = " + shown(value) +
                                " is not allowed; allowed: " + std::string(allowed));
  }
}

/// What a function takes, read from the signature that help() shows: "ulp(values, format='binary16')", that
/// of a method with $self. Its example is the first line of the documentation behind ">>> ".
class Signature {
 public:
  Signature(std::string_view text, std::string_view documentation);

  const std::string& name() const { return name_; }
  /// The documentation under a signature of which inspect and help() read the name and the parameters.
  std::string docstring() const { return text_ + "\n--\n\n" + documentation_; }
  /// The docstring of a constructor, which Python calls __init__.
  std::string constructor_docstring() const;

  /// One value for each parameter, and in `rest` the keywords that **attributes take. Throws TypeError.
  std::vector<py::object> bind(const py::args& given, const py::kwargs& keywords, py::kwargs& rest) const;

  /// The value of parameter i as an A.
  template <class A>
  decltype(auto) argument(std::size_t i, const std::vector<py::object>& values,
                          const py::kwargs& rest) const {
    using T = std::remove_cvref_t<A>;
    if constexpr (std::same_as<T, py::kwargs>) {
      return (rest);
    } else if constexpr (std::same_as<T, py::object>) {
      return (values[i]);
    } else {
      constexpr bool is_bound_class =
          std::is_reference_v<A> &&
          std::derived_from<py::detail::make_caster<T>, py::detail::type_caster_generic>;
      using Cast = std::conditional_t<is_bound_class, A, T>;
      return checked_cast<Cast>(name_ + ": " + parameters_[i].name, values[i],
                                allowed_values<T>() + as_in_example());
    }
  }

 private:
  struct Parameter {
    std::string name;
    std::optional<py::object> fallback;
  };
  [[noreturn]] void reject(const std::string& what) const;
  std::string as_in_example() const;

  std::string text_, documentation_, name_, shown_, example_;
  std::vector<Parameter> parameters_;
  bool takes_rest_ = false;
};

/// The function of Python's arguments that binds them by `signature` and calls `function`, in the default
/// floating-point environment: in another, which any library of the process may have left, numpy's casts
/// differ.
template <class Result, class... A>
auto bound(Signature signature, std::function<Result(A...)> function) {
  return [signature = std::move(signature), function = std::move(function)](
             const py::args& given, const py::kwargs& keywords) -> Result {
    py::kwargs rest;
    const std::vector<py::object> values = signature.bind(given, keywords, rest);
    return fp16::detail::in_default_environment([&]() -> Result {
      return [&]<std::size_t... i>(std::index_sequence<i...>)->Result {
        return function(signature.argument<A>(i, values, rest)...);
      }
      (std::index_sequence_for<A...>{});
    });
  };
}

/// Adds a function to a module, or a method to a class.
template <class Scope, class Function>
void define(Scope& scope, std::string_view signature_text, std::string_view documentation,
            Function function) {
  const Signature signature(signature_text, documentation);
  scope.def(signature.name().c_str(), bound(signature, std::function(std::move(function))),
            signature.docstring().c_str());
}

/// Adds the constructor of a class, whose signature is written with the name of the class.
template <class T, class Function, class... Options>
void define_constructor(py::class_<T, Options...>& scope, std::string_view signature_text,
                        std::string_view documentation, Function function) {
  const Signature signature(signature_text, documentation);
  scope.def(py::init(bound(signature, std::function(std::move(function)))),
            signature.constructor_docstring().c_str());
}

}  // namespace halflab_python
