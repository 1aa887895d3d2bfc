#pragma once
/// Which instruction sets the vectorised code may use on this machine. Every path gives the same bits.

#include <span>
#include <string_view>

namespace fp16 {

enum class VectorPath {
  portable,   ///< baseline instructions of the compiler's target only
  avx2_f16c,  ///< AVX2, FMA and F16C
  avx512,     ///< AVX-512 F, VL, BW and DQ, besides the above
  neon,       ///< NEON, which every processor of AArch64 has
  neon_fp16,  ///< FEAT_FP16, arithmetic of halves, besides that
};

/// The paths this processor can run, slowest first; `portable` is always among them.
std::span<const VectorPath> available_vector_paths();

/// The path that calls without an explicit path take: the fastest available, unless the environment variable
/// HALFLAB_VECTOR_PATH names another available one. Read once.
/// Throws std::invalid_argument when the variable names a path that is unknown or not available here.
VectorPath active_vector_path();

/// Throws std::invalid_argument when this processor cannot run `path`.
void require_available(VectorPath path);

std::string_view name_of(VectorPath path);

}  // namespace fp16
