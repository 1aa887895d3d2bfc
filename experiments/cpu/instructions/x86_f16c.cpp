/// F16C: conversions between FP16 and FP32, in registers of 128, 256 and 512 bits.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/cpu/instructions/family.h"
#include "experiments/cpu/instructions/x86_control.h"
#include "experiments/cpu/instructions/x86_executed.h"
#include "experiments/cpu/instructions/x86_rules.h"
#include "fp16/codec.h"
#include "fp16/formats.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace experiments::validate_cpu {
namespace {

using fp16::binary16;
using fp16::binary32;
using fp16::Rounding;
using validation::domain_called;
using validation::half_number;

template <std::size_t lanes>
using Halves = std::array<std::uint16_t, lanes>;
template <std::size_t lanes>
using Floats = std::array<float, lanes>;

// Widening and narrowing, by the immediate that says the rounding. Through memory, so that nothing but the instruction
// itself needs a processor that has it.
// clang-format off
#define WIDEN(lanes, load, from, to) EXECUTE(lanes, (Halves<lanes> a) { \
  Floats<lanes> y; \
  asm volatile(load " %1, %%" from "\n\tvcvtph2ps %%" from ", %%" to "\n\tvmovups %%" to ", %0\n\tvzeroupper" \
               : "=m"(y) : "m"(a) : "xmm0"); \
  return y; })
#define WIDEN_1 EXECUTE(1, (std::uint16_t a) { \
  const std::uint32_t x = a; float y; \
  asm volatile("vmovd %1, %%xmm0\n\tvcvtph2ps %%xmm0, %%xmm0\n\tvmovss %%xmm0, %0" : "=m"(y) : "m"(x) : "xmm0"); \
  return y; })
#define NARROW(lanes, immediate, store, from, to) EXECUTE(lanes, (Floats<lanes> a) { \
  Halves<lanes> y; \
  asm volatile("vmovups %1, %%" from "\n\tvcvtps2ph $" #immediate ", %%" from ", %%" to "\n\t" store " %%" to \
               ", %0\n\tvzeroupper" : "=m"(y) : "m"(a) : "xmm0"); \
  return y; })
#define NARROW_1(immediate) EXECUTE(1, (float a) { \
  std::uint32_t y; \
  asm volatile("vmovss %1, %%xmm0\n\tvcvtps2ph $" #immediate ", %%xmm0, %%xmm0\n\tvmovd %%xmm0, %0" \
               : "=m"(y) : "m"(a) : "xmm0"); \
  return static_cast<std::uint16_t>(y); })
#define NARROW_4(immediate) NARROW(4, immediate, "vmovq", "xmm0", "xmm0")
#define NARROW_8(immediate) NARROW(8, immediate, "vmovups", "ymm0", "xmm0")
#define NARROW_16(immediate) NARROW(16, immediate, "vmovups", "zmm0", "ymm0")
#define EACH_IMMEDIATE(narrow) { narrow(0), narrow(1), narrow(2), narrow(3), narrow(4) }
// clang-format on

constexpr NumberType single_number{.bits = 32};
constexpr std::string_view f16c = "F16C", avx512 = "AVX512F";

constexpr std::string_view operand_rule = "a subnormal float raises the denormal-operand exception";
constexpr std::string_view daz_rule = "a subnormal float is a zero, and raises nothing";

/// VCVTPH2PS: neither DAZ nor FTZ plays a part, and a subnormal half raises nothing (volume 2).
Outcome widened(const Operands& operands, const Mode&) {
  const auto result = fp16::convert<binary32, binary16>(static_cast<std::uint16_t>(operands.a));
  return {.value = result.bits, .exceptions = exceptions_of(result.flags)};
}

/// The rounding of the immediate.
template <Rounding rounding>
Outcome narrowed(const Operands& operands, const Mode& mode) {
  Mode rounded = mode;
  rounded.rounding = rounding;
  return x86::narrowed<binary32>(operands, rounded);
}

class List {
 public:
  void widen(const std::string& registers, int lanes, Execute execute, std::string_view needs = f16c) {
    for (const Mode& mode : {x86::nearest, x86::daz, x86::ftz})
      append({.name = "vcvtph2ps " + registers,
              .group = "floating-point conversion",
              .domain = &domain_called("codes"),
              .model = widened,
              .mode = mode,
              .result = single_number,
              .lanes = lanes,
              .execute = execute,
              .needs = needs});
  }

  void narrow(const std::string& registers, Model model, const Mode& mode, int lanes, Execute execute,
              std::string_view needs = f16c) {
    append({.name = "vcvtps2ph " + registers,
            .group = "floating-point conversion",
            .domain = &domain_called("singles"),
            .model = model,
            .mode = mode,
            .operands = {single_number},
            .lanes = lanes,
            .execute = execute,
            .needs = needs,
            .rule = mode.reads_wide_as_zero ? daz_rule : operand_rule});
  }

  std::vector<Instruction> take() { return std::move(rows_); }

 private:
  void append(Instruction row) {
    if (!row.mode.name.empty()) row.name += ", " + std::string(row.mode.name);
    rows_.push_back(std::move(row));
  }

  std::vector<Instruction> rows_;
};

/// The four immediates, then the one that leaves the rounding to MXCSR, in each state of that.
void append_narrowing(List& list, const std::string& registers, int lanes,
                      const std::array<Execute, 5>& forms, std::string_view needs) {
  const auto named = [&](const char* immediate) { return registers + ", " + immediate; };
  list.narrow(named("0"), narrowed<Rounding::nearest_even>, x86::nearest, lanes, forms[0], needs);
  list.narrow(named("1"), narrowed<Rounding::toward_negative>, x86::nearest, lanes, forms[1], needs);
  list.narrow(named("2"), narrowed<Rounding::toward_positive>, x86::nearest, lanes, forms[2], needs);
  list.narrow(named("3"), narrowed<Rounding::toward_zero>, x86::nearest, lanes, forms[3], needs);
  for (const Mode& mode : x86::with(x86::with(x86::all_roundings, x86::daz), x86::ftz))
    list.narrow(named("4"), x86::narrowed<binary32>, mode, lanes, forms[4], needs);
}

}  // namespace

const std::vector<Instruction>& f16c_instructions() {
  static const std::vector<Instruction> rows = [] {
    List list;
    list.widen("xmm, one element", 1, WIDEN_1);
    list.widen("xmm", 4, WIDEN(4, "vmovq", "xmm0", "xmm0"));
    list.widen("ymm", 8, WIDEN(8, "vmovups", "xmm0", "ymm0"));
    list.widen("zmm", 16, WIDEN(16, "vmovups", "ymm0", "zmm0"), avx512);
    append_narrowing(list, "xmm, one element", 1, EACH_IMMEDIATE(NARROW_1), f16c);
    append_narrowing(list, "xmm", 4, EACH_IMMEDIATE(NARROW_4), f16c);
    append_narrowing(list, "ymm", 8, EACH_IMMEDIATE(NARROW_8), f16c);
    append_narrowing(list, "zmm", 16, EACH_IMMEDIATE(NARROW_16), avx512);
    return list.take();
  }();
  return rows;
}

#ifdef __x86_64__

bool f16c_has(std::string_view feature) {
  if (feature == f16c) {  // which Clang's __builtin_cpu_supports has no name for
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  }
  if (feature == avx512) return __builtin_cpu_supports("avx512f");
  return feature.empty();
}

/// The brand string (volume 2, CPUID, leaves 80000002H to 80000004H).
std::string processor_model() {
  std::string model;
  for (unsigned leaf = 0x80000002; leaf <= 0x80000004; ++leaf) {
    std::array<unsigned, 4> words{};
    if (__get_cpuid(leaf, &words[0], &words[1], &words[2], &words[3]) == 0) return "unknown";
    for (const unsigned word : words) {
      for (int shift = 0; shift < 32; shift += 8) {
        if (const char letter = static_cast<char>(word >> shift & 0xFF); letter != 0) model += letter;
      }
    }
  }
  const std::size_t first = model.find_first_not_of(' '), last = model.find_last_not_of(' ');
  return first == std::string::npos ? "unknown" : model.substr(first, last - first + 1);
}

#else

bool f16c_has(std::string_view) {
  return false;
}

#endif

}  // namespace experiments::validate_cpu
