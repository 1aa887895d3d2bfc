#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/cpu/instructions/family.h"

namespace experiments::validate_cpu {

std::span<const Family> families() {
  static constexpr Family all[] = {
      {"aarch64", "AArch64 with FEAT_FP16", "aarch64", "qemu-aarch64 -cpu max",
       "Arm Architecture Reference Manual for A-profile (DDI 0487)", aarch64_instructions, aarch64_has},
      {"riscv64", "RISC-V with Zfh", "riscv64", "qemu-riscv64 -cpu rv64,Zfh=true",
       "The RISC-V Instruction Set Manual, Volume I: Unprivileged Architecture (20240411)",
       riscv64_instructions, riscv64_has},
      {"f16c", "x86-64 with F16C", "x86_64", "qemu-x86_64 -cpu max",
       "Intel 64 and IA-32 Architectures Software Developer's Manual", f16c_instructions, f16c_has},
      {"avx512_fp16", "x86-64 with AVX512-FP16", "x86_64", "",
       "Intel 64 and IA-32 Architectures Software Developer's Manual", avx512_fp16_instructions,
       avx512_fp16_has},
  };
  return all;
}

std::vector<std::string_view> features_of(const Family& family) {
  std::vector<std::string_view> features;
  for (const Instruction& row : family.instructions()) {
    if (std::ranges::find(features, row.needs) == features.end()) features.push_back(row.needs);
  }
  std::erase(features, std::string_view());
  return features;
}

std::string list_identity(const Family& family) {
  std::uint64_t hash = 0xCBF29CE484222325;  // FNV-1a
  for (const Instruction& row : family.instructions()) {
    for (const char letter : row.name + '\n')
      hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3;
  }
  return std::to_string(hash);
}

const Family* family_called(std::string_view name) {
  const auto found = std::ranges::find(families(), name, &Family::name);
  return found == families().end() ? nullptr : &*found;
}

std::string_view this_processor() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#elif defined(__riscv) && __riscv_xlen == 64
  return "riscv64";
#else
  return "unknown";
#endif
}

}  // namespace experiments::validate_cpu
