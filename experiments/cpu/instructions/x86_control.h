#pragma once
/// MXCSR (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, 10.2.3), which half instructions of
/// x86 round by and raise exceptions in.

#include <array>
#include <cstdint>
#include <utility>

#include "experiments/cpu/instructions/instruction.h"

namespace experiments::validate_cpu {

#ifdef __x86_64__

class Mxcsr {
 public:
  explicit Mxcsr(const Mode& mode) {
    asm volatile("stmxcsr %0" : "=m"(before_));
    using fp16::Rounding;
    const std::uint32_t rounding = mode.rounding == Rounding::toward_negative   ? 1
                                   : mode.rounding == Rounding::toward_positive ? 2
                                   : mode.rounding == Rounding::toward_zero     ? 3
                                                                                : 0;
    const std::uint32_t daz = mode.reads_wide_as_zero, ftz = mode.flushes_wide;
    clear_ = all_masked | rounding << 13 | daz << 6 | ftz << 15;
    clear();
  }
  ~Mxcsr() { asm volatile("ldmxcsr %0" : : "m"(before_)); }
  Mxcsr(const Mxcsr&) = delete;
  Mxcsr& operator=(const Mxcsr&) = delete;

  void clear() const { asm volatile("ldmxcsr %0" : : "m"(clear_)); }
  Exceptions raised() const {
    std::uint32_t status = 0;
    asm volatile("stmxcsr %0" : "=m"(status));
    constexpr std::array order{invalid, subnormal_operand, divide_by_zero, overflow, underflow, inexact};
    Exceptions raised = 0;
    for (std::size_t bit = 0; bit < order.size(); ++bit)
      raised |= static_cast<Exceptions>((status >> bit & 1) * order[bit]);
    return raised;
  }

 private:
  static constexpr std::uint32_t all_masked = 0x1F80;

  std::uint32_t before_ = 0, clear_ = 0;
};

#endif

}  // namespace experiments::validate_cpu
