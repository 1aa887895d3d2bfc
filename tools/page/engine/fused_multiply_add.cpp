/// fmaf, in the place of the C library's, whose results below the normal floats are rounded twice.

#include <bit>
#include <cstdint>

#include "fp16/arithmetic.h"

extern "C" float fmaf(float a, float b, float c) {
  const auto code = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  return std::bit_cast<float>(fp16::fma<fp16::binary32>(code(a), code(b), code(c)).bits);
}
