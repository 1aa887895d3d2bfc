#pragma once
/// The half that the compiler converts to and from, a stranger to the library's: `_Float16`, or where C++ has none, that
/// of AArch64's C, whose arithmetic is that of floats.

#include "fp16/config.h"

namespace oracle {

#ifdef FP16_HAS_NATIVE_HALF
using CompilersHalf = _Float16;
#else
using CompilersHalf = __fp16;
#endif

}  // namespace oracle
