#pragma once
/// The black boxes whose order is asked for: a function of Python, or one of our own orders.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fp16/formats.h"

namespace halflab::reveal {

/// Sums numbers of one format, in its own order and arithmetic.
using Box = std::function<double(std::span<const double>)>;

/// A function of a Python module in a process of its own. Arrays are NumPy's, of PyTorch where the module is torch or one
/// of its parts. Throws std::runtime_error where the interpreter, the module or the function is not there, or the
/// function fails.
Box python_box(const std::string& interpreter, const std::string& module_and_function,
               const fp16::NamedFormat& format);

/// The names of our own orders, and one of them in the arithmetic of the format. Throws std::invalid_argument.
std::vector<std::string> order_names();
Box order_box(const std::string& name, const fp16::NamedFormat& format);

}  // namespace halflab::reveal
