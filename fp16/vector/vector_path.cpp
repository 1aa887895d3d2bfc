#include "fp16/vector_path.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#ifdef __x86_64__
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace fp16 {
namespace {

struct NamedPath {
  std::string_view name;
  VectorPath path;
};

constexpr std::array named_paths{
    NamedPath{"portable", VectorPath::portable},   NamedPath{"avx2_f16c", VectorPath::avx2_f16c},
    NamedPath{"avx512", VectorPath::avx512},       NamedPath{"neon", VectorPath::neon},
    NamedPath{"neon_fp16", VectorPath::neon_fp16},
};

#ifdef __x86_64__
// Clang's __builtin_cpu_supports did not know "f16c" before its version 19.
bool supports_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

std::vector<VectorPath> detect_paths() {
  std::vector<VectorPath> paths{VectorPath::portable};
#ifdef __x86_64__
  __builtin_cpu_init();
  const bool avx2_f16c = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && supports_f16c();
  if (!avx2_f16c) return paths;
  paths.push_back(VectorPath::avx2_f16c);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
    paths.push_back(VectorPath::avx512);
  }
#elif defined(__aarch64__)
  paths.push_back(VectorPath::neon);
#ifdef __linux__
  constexpr unsigned long halves = HWCAP_FPHP | HWCAP_ASIMDHP;
  if ((getauxval(AT_HWCAP) & halves) == halves) paths.push_back(VectorPath::neon_fp16);
#endif
#endif
  return paths;
}

VectorPath choose_path() {
  const std::span<const VectorPath> available = available_vector_paths();
  const char* wanted = std::getenv("HALFLAB_VECTOR_PATH");
  if (wanted == nullptr || *wanted == '\0') return available.back();
  std::string allowed;
  for (const VectorPath path : available) {
    if (name_of(path) == wanted) return path;
    allowed += (allowed.empty() ? "" : ", ") + std::string(name_of(path));
  }
  throw std::invalid_argument("HALFLAB_VECTOR_PATH: '" + std::string(wanted) +
                              "' is not available on this processor; allowed: " + allowed);
}

}  // namespace

std::span<const VectorPath> available_vector_paths() {
  static const std::vector<VectorPath> paths = detect_paths();
  return paths;
}

VectorPath active_vector_path() {
  static const VectorPath path = choose_path();
  return path;
}

void require_available(VectorPath path) {
  const std::span<const VectorPath> available = available_vector_paths();
  if (std::find(available.begin(), available.end(), path) == available.end()) {
    throw std::invalid_argument("path: '" + std::string(name_of(path)) +
                                "' is not available on this processor");
  }
}

std::string_view name_of(VectorPath path) {
  for (const NamedPath& row : named_paths) {
    if (row.path == path) return row.name;
  }
  return "unknown";
}

}  // namespace fp16
