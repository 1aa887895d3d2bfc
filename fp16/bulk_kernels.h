#pragma once
/// Internal to bulk: what an instruction set contributes. The translation unit compiled for AVX2 includes
/// nothing else that generates code, so that the linker cannot choose a function compiled for AVX2 for every
/// caller.

#include <cstddef>
#include <cstdint>

namespace fp16::detail {

struct ConversionKernels {
  void (*float_to_half)(const float* in, std::uint16_t* out, std::size_t count);
  void (*half_to_float)(const std::uint16_t* in, float* out, std::size_t count);
};

extern const ConversionKernels avx2_f16c_conversion_kernels;

}  // namespace fp16::detail
