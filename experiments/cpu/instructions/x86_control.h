#pragma once
/// MXCSR (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, 10.2.3), which half instructions of
/// x86 round by and raise exceptions in, and the modes that it is tried in.

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "experiments/cpu/instructions/instruction.h"

namespace experiments::validate_cpu {

namespace x86 {

inline constexpr Mode nearest{};
inline constexpr Mode daz{.name = "DAZ", .reads_wide_as_zero = true};
inline constexpr Mode ftz{.name = "FTZ", .flushes_wide = true};
inline const std::vector<Mode> all_roundings{
    nearest,
    {.name = "toward_negative", .rounding = fp16::Rounding::toward_negative},
    {.name = "toward_positive", .rounding = fp16::Rounding::toward_positive},
    {.name = "toward_zero", .rounding = fp16::Rounding::toward_zero}};

/// `modes` and another one.
inline std::vector<Mode> with(std::vector<Mode> modes, const Mode& further) {
  modes.push_back(further);
  return modes;
}

}  // namespace x86

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
