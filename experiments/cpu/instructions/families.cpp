#include <algorithm>

#include "experiments/cpu/instructions/family.h"

namespace experiments::validate_cpu {

std::span<const Family> families() {
  static constexpr Family all[] = {
      {"aarch64", "AArch64 with FEAT_FP16", "aarch64", "qemu-aarch64 -cpu max",
       "Arm Architecture Reference Manual for A-profile (DDI 0487)", aarch64_instructions, aarch64_has},
  };
  return all;
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
