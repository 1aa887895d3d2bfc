#include "tools/python/bindings/calls.h"

#include <pybind11/eval.h>

#include <algorithm>

#include "fp16/names.h"

namespace halflab_python {
namespace {

std::string_view first_example(std::string_view documentation) {
  constexpr std::string_view prompt = ">>> ";
  const std::size_t begin = documentation.find(prompt);
  if (begin == std::string_view::npos) return {};
  const std::string_view example = documentation.substr(begin + prompt.size());
  return example.substr(0, example.find('\n'));
}

/// Whether `value` is a str that an error may show as it is: one line, and UTF-8 holds it.
bool is_printable(const py::handle& value) {
  return PyUnicode_Check(value.ptr()) && py::cast<bool>(value.attr("isprintable")());
}

}  // namespace

std::string shortened(const py::str& text) {
  constexpr std::size_t limit = 80, kept = limit - 3;
  const py::object line = py::str(" ").attr("join")(text.attr("split")());
  if (py::len(line) <= limit) return py::cast<std::string>(line);
  return py::cast<std::string>(line[py::slice(0, kept, 1)]) + "...";
}

std::string shown(const py::handle& value) {
  try {
    return shortened(py::repr(value));
  } catch (const py::error_already_set& error) {  // an integer of more digits than Python prints
    if (!error.matches(PyExc_Exception)) throw;   // KeyboardInterrupt and the like
  } catch (const py::cast_error&) {               // a repr() that UTF-8 does not hold
  }
  return "a value of type " + shortened(py::repr(py::type::handle_of(value).attr("__name__")));
}

bool is_truth_value(const py::handle& value) {
  return PyBool_Check(value.ptr()) || py::isinstance(value, py::module_::import("numpy").attr("bool_"));
}

bool is_name(const py::handle& value) {
  constexpr Py_ssize_t longest = 100;
  return is_printable(value) && PyUnicode_GET_LENGTH(value.ptr()) <= longest;
}

bool is_spec(const py::handle& value) {
  constexpr Py_ssize_t longest = 300;
  if (!is_printable(value) || PyUnicode_GET_LENGTH(value.ptr()) > longest) return false;
  const py::list parts(value.attr("split")(":"));
  return std::all_of(parts.begin(), parts.end(), is_name);
}

Signature::Signature(std::string_view text, std::string_view documentation)
    : text_(text),
      documentation_(documentation),
      name_(text.substr(0, text.find('('))),
      shown_(text),
      example_(first_example(documentation)) {
  std::string_view list = text.substr(name_.size() + 1, text.size() - name_.size() - 2);
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(", "), list.size());
    const std::string_view parameter = list.substr(0, end);
    list.remove_prefix(std::min(end + 2, list.size()));
    const std::size_t equals = parameter.find('=');
    if (parameter.starts_with("**")) {
      takes_rest_ = true;
    } else if (parameter == "$self") {
      parameters_.push_back({.name = "self"});
      shown_.erase(shown_.find("$self"), std::string_view("$self, ").size() - (list.empty() ? 2 : 0));
    } else if (equals == std::string_view::npos) {
      parameters_.push_back({.name = std::string(parameter)});
    } else {
      parameters_.push_back({.name = std::string(parameter.substr(0, equals)),
                             .fallback = py::eval(std::string(parameter.substr(equals + 1)))});
    }
  }
}

std::string Signature::constructor_docstring() const {
  const std::string list = text_.substr(name_.size() + 1);
  return "__init__($self" + (list == ")" ? list : ", " + list) + "\n--\n\n" + documentation_;
}

std::vector<py::object> Signature::bind(const py::args& given, const py::kwargs& keywords,
                                        py::kwargs& rest) const {
  if (given.size() > parameters_.size())
    reject(std::to_string(given.size()) + " positional arguments are given, " +
           std::to_string(given.size() - parameters_.size()) + " too many");
  std::vector<py::object> values(parameters_.size());
  std::transform(given.begin(), given.end(), values.begin(),
                 [](const py::handle& each) { return py::reinterpret_borrow<py::object>(each); });
  for (const auto& [key, value] : keywords) {
    if (!is_name(key)) reject("unknown argument " + shown(key));
    const auto name = py::cast<std::string>(key);
    const auto parameter = std::ranges::find(parameters_, name, &Parameter::name);
    if (parameter != parameters_.end()) {
      py::object& slot = values[static_cast<std::size_t>(parameter - parameters_.begin())];
      if (slot) reject(name + " is given twice");
      slot = py::reinterpret_borrow<py::object>(value);
    } else if (takes_rest_) {
      rest[key] = value;
    } else {
      reject("unknown argument " + shown(key));
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i]) continue;
    if (!parameters_[i].fallback) reject(parameters_[i].name + " is missing");
    values[i] = *parameters_[i].fallback;
  }
  return values;
}

void Signature::reject(const std::string& what) const {
  throw py::type_error(name_ + ": " + what + "; allowed: " + shown_ + as_in_example());
}

std::string Signature::as_in_example() const {
  return example_.empty() ? "" : ", as in " + example_;
}

}  // namespace halflab_python
