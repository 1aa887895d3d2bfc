#pragma once
/// Optional, for programs that use the {fmt} library: halves in fmt::format.

#include <fmt/format.h>

#include "half_formatter.h"

/// `{}` is the shortest decimal that reads back as the same half. All the specifications of floating-point
/// numbers are there: [[fill]align][sign][#][0][width][.precision][L][type]; with a precision or a type they
/// show the exact value. The layout is fmt's own for a double.
template <>
struct fmt::formatter<fp16::half> : fp16::detail::HalfFormatter<fmt::formatter<double>> {};
