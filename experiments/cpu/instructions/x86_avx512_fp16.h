#pragma once
/// The rows of AVX512-FP16, of which each group is a file x86_avx512_fp16*.cpp: the modes of MXCSR, and instructions on a single
/// element and on a whole register.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/cpu/instructions/instruction.h"
#include "experiments/cpu/instructions/x86_executed.h"

namespace experiments::validate_cpu::avx512_fp16 {

using x86::all_roundings;
using x86::daz;
using x86::ftz;
using x86::nearest;
using x86::with;

using Half = std::uint16_t;
template <typename Element, std::size_t lanes>
using Register = std::array<Element, lanes>;
using Halves = Register<Half, 32>;

// Operands come from memory and results go there, so that nothing but the instruction itself needs a processor that has it.
// An element is stored by VMOVSH: Bochs 3.0 leaves the memory as it was under VMOVW.
// clang-format off
#define LOAD_1 "vmovsh %1, %%xmm0\n\t"
#define LOAD_2 LOAD_1 "vmovsh %2, %%xmm1\n\t"
#define STORE "\n\tvmovsh %%xmm0, %0"
#define LOAD_WIDE_1 "vmovups %1, %%zmm0\n\t"
#define LOAD_WIDE_2 LOAD_WIDE_1 "vmovups %2, %%zmm1\n\t"
#define STORE_WIDE "\n\tvmovups %%zmm0, %0\n\tvzeroupper"
// clang-format on

inline constexpr std::string_view needed = "AVX512-FP16";
inline constexpr std::string_view operand_rule = "a subnormal operand raises the denormal-operand exception";

/// Half operands and half results are never flushed, whatever DAZ and FTZ say (volume 2, VCVTPH2PSX and VCVTPS2PHX).
inline constexpr Mode flushing{.name = "DAZ and FTZ", .reads_wide_as_zero = true, .flushes_wide = true};

class List {
 public:
  void append(Instruction row, const std::vector<Mode>& modes) {
    row.needs = needed;
    for (const Mode& mode : modes) {
      rows_.push_back(row);
      rows_.back().mode = mode;
      if (!mode.name.empty()) rows_.back().name += ", " + std::string(mode.name);
    }
  }

  /// The form of a single element, SH, and that of a whole register of halves, PH; `suffix` comes after the registers.
  void append_pair(const std::string& name, Instruction row, Execute element, Execute whole,
                   const std::vector<Mode>& modes, const std::string& suffix = "") {
    row.name = name + "sh xmm" + suffix;
    row.execute = element;
    append(row, modes);
    row.name = name + "ph zmm" + suffix;
    row.lanes = 32;
    row.execute = whole;
    append(row, modes);
  }

  std::vector<Instruction> take() { return std::move(rows_); }

 private:
  std::vector<Instruction> rows_;
};

// The groups, each in its file.
void append_comparisons(List& list);
void append_conversions(List& list);
void append_roundings(List& list);

}  // namespace experiments::validate_cpu::avx512_fp16
