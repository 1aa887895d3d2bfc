#pragma once
/* Stands for Maratyszcza's FP16, which PyTorch carries: a header of this name, global functions of these names. */

#include <math.h>
#include <stdint.h>

static inline float fp16_ieee_to_fp32_value(uint16_t h) {
  const int exponent = h >> 10 & 0x1f;
  const int fraction = h & 0x3ff;
  const float infinite_or_nan = fraction == 0 ? INFINITY : NAN;
  const float magnitude = exponent == 0x1f ? infinite_or_nan
                          : exponent == 0  ? ldexpf((float)fraction, -24)
                                           : ldexpf((float)(fraction + 0x400), exponent - 25);
  return h >> 15 ? -magnitude : magnitude;
}
