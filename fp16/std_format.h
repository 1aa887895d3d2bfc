#pragma once
/// Optional: halves in std::format, where the standard library has it; else this header is empty.

#include <version>

#ifdef __cpp_lib_format
#include <format>

#include "half_formatter.h"

/// `{}` is the shortest decimal that reads back as the same half. All the specifications of floating-point
/// numbers are there; with a precision or a type they show the exact value. The layout is that of a double.
template <>
struct std::formatter<fp16::half> : fp16::detail::HalfFormatter<std::formatter<double>> {};
#endif
