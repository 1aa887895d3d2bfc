/// In which order a Python function sums.

#include <algorithm>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "fp16/reveal_order.h"
#include "tools/python/bindings/arguments.h"
#include "tools/python/bindings/bindings.h"

namespace halflab_python {
namespace {

using fp16::SummationTree;

constexpr int most_terms = 65'536;  // n * n / 2 calls
constexpr auto allowed_terms = "integers from 1 to 65536";

/// ((0, 1), 2).
py::object nested(const SummationTree& tree) {
  if (tree.leaves == 0) return py::none();
  std::vector<py::object> sums;
  const auto child_of = [&](std::size_t child) {
    return child < tree.leaves ? py::object(py::int_(child)) : sums[child - tree.leaves];
  };
  for (const auto& children : tree.nodes) {
    py::tuple tuple(children.size());
    for (std::size_t i = 0; i < children.size(); ++i) tuple[i] = child_of(children[i]);
    sums.push_back(tuple);
  }
  return sums.empty() ? py::object(py::int_(0)) : sums.back();
}

/// What the function takes: its elements' format, and how an array of doubles becomes one.
struct Kind {
  const Format* format;
  std::function<py::object(const py::array_t<double>&)> made_of;
};

[[noreturn]] void reject_dtype(const std::string& name, const std::string& reason) {
  throw std::invalid_argument("reveal_order: dtype = '" + name + "' " + reason +
                              "; allowed: float16, float32, float64, or one of PyTorch, as torch.bfloat16");
}

/// Tensors of torch.NAME.
Kind torch_kind(const std::string& name) {
  const Format& format = format_argument(py::str(name)).format;
  py::object torch;
  try {
    torch = py::module_::import("torch");
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_ImportError) && !error.matches(PyExc_OSError)) throw;
    reject_dtype("torch." + name, "needs PyTorch, which cannot be imported");
  }
  if (!py::hasattr(torch, name.c_str())) reject_dtype("torch." + name, "is no dtype");
  const py::object to = torch.attr(name.c_str()), from_numpy = torch.attr("from_numpy");
  return {&format, [=](const py::array_t<double>& array) { return from_numpy(array).attr("to")(to); }};
}

/// Arrays of numpy, unless it is a dtype of PyTorch or names one.
Kind kind_of(const py::object& dtype) {
  const std::string name = py::cast<std::string>(py::str(dtype)), prefix = "torch.";
  if (name.starts_with(prefix)) return torch_kind(name.substr(prefix.size()));
  const NamedFormat& format = format_argument(dtype);
  for (const char* const known : {"float16", "float32", "float64"}) {
    if (format_argument(py::str(known)).format == format.format)
      return {&format.format, [=](const py::array_t<double>& array) { return array.attr("astype")(known); }};
  }
  reject_dtype(std::string(format.name), "has no arrays of numpy");
}

py::object reveal_order(const py::object& function, const py::object& n, const py::object& dtype) {
  if (PyCallable_Check(function.ptr()) == 0)
    throw std::invalid_argument("reveal_order: function = " + shown(function) +
                                " is not allowed; allowed: what can be called with an array");
  const auto terms = checked_cast<int>("reveal_order: n", n, allowed_terms);
  if (terms < 1 || terms > most_terms)
    throw std::invalid_argument("reveal_order: n = " + std::to_string(terms) +
                                " is not allowed; allowed: " + allowed_terms);
  const Kind kind = kind_of(dtype);
  const auto sum = [&](std::span<const double> values) {
    py::array_t<double> array = new_array<double>({static_cast<py::ssize_t>(values.size())});
    std::ranges::copy(values, array.mutable_data());
    return py::cast<double>(py::float_(function(kind.made_of(array))));
  };
  try {
    return nested(fp16::reveal_order(sum, static_cast<std::size_t>(terms), fp16::masks_for(*kind.format)));
  } catch (const fp16::NotATree& error) {
    throw std::invalid_argument(std::string("reveal_order: the function is no sum in a fixed order: ") +
                                error.what());
  }
}

}  // namespace

void bind_reveal(py::module_& module) {
  define(
      module, "reveal_order(function, n, dtype='float32')",
      "The order in which function(array) sums n numbers, told from its results alone, as nested tuples of\n"
      "the terms' places: ((0, 1), 2) adds 0 and 1 first. A tuple of more than two is added at one time, as\n"
      "a tensor core does; one of all n is what an exact sum, or one of more digits than the probe exceeds,\n"
      "looks like. Python can neither print nor compare tuples some 1,000 deep, as of a sum one after the "
      "other;\n"
      "halflab.flat_order(order) lists the additions.\n\n"
      "    dtype  of the array, in numpy; or of PyTorch, torch.bfloat16 or its name: then it is a tensor\n\n"
      "The function gets a large number, its negative and small ones elsewhere, at most n * n / 2 times\n"
      "(FPRev: Xie et al., USENIX ATC 2025). A ValueError says that it is no sum, or that its order "
      "changes.\n\n"
      ">>> halflab.reveal_order(lambda x: x[0] + (x[1] + x[2]), 3)\n"
      "(0, (1, 2))",
      reveal_order);
}

}  // namespace halflab_python
