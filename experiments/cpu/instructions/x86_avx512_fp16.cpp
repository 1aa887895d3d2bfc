/// AVX512-FP16: half arithmetic of x86-64, in a single element and in registers of 512 bits.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/cpu/instructions/family.h"
#include "experiments/cpu/instructions/inputs.h"
#include "experiments/cpu/instructions/x86_control.h"
#include "experiments/cpu/instructions/x86_executed.h"
#include "experiments/cpu/instructions/x86_rules.h"
#include "fp16/formats.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace experiments::validate_cpu {
namespace {

using fp16::binary16;
using fp16::Predicate;
using fp16::Rounding;
using validation::domain_called;
using validation::half_number;
using validation::NumberKind;

using Half = std::uint16_t;
using Halves = std::array<Half, 32>;

// A register of 512 bits, and a single element of one. Through memory, so that nothing but the instruction itself needs a
// processor that has it.
// clang-format off
#define LOAD_1 "vmovw %1, %%xmm0\n\t"
#define LOAD_2 LOAD_1 "vmovw %2, %%xmm1\n\t"
#define STORE "\n\tvmovw %%xmm0, %0"
#define LOAD_WIDE_1 "vmovups %1, %%zmm0\n\t"
#define LOAD_WIDE_2 LOAD_WIDE_1 "vmovups %2, %%zmm1\n\t"
#define STORE_WIDE "\n\tvmovups %%zmm0, %0\n\tvzeroupper"
#define ELEMENT_1(name) EXECUTE(1, (Half a) { \
  Half y; asm volatile(LOAD_1 name " %%xmm0, %%xmm0, %%xmm0" STORE : "=m"(y) : "m"(a) : "xmm0"); return y; })
#define ELEMENT_2(name) EXECUTE(1, (Half a, Half b) { \
  Half y; asm volatile(LOAD_2 name " %%xmm1, %%xmm0, %%xmm0" STORE : "=m"(y) : "m"(a), "m"(b) : "xmm0", "xmm1"); \
  return y; })
#define REGISTER_1(name) EXECUTE(32, (Halves a) { \
  Halves y; asm volatile(LOAD_WIDE_1 name " %%zmm0, %%zmm0" STORE_WIDE : "=m"(y) : "m"(a) : "xmm0"); return y; })
#define REGISTER_2(name) EXECUTE(32, (Halves a, Halves b) { \
  Halves y; asm volatile(LOAD_WIDE_2 name " %%zmm1, %%zmm0, %%zmm0" STORE_WIDE \
                         : "=m"(y) : "m"(a), "m"(b) : "xmm0", "xmm1"); return y; })
#define ELEMENT_ADDED(name) EXECUTE(1, (Half a, Half b, Half c) { \
  Half y; asm volatile(LOAD_2 "vmovw %3, %%xmm2\n\t" name " %%xmm1, %%xmm0, %%xmm2\n\tvmovw %%xmm2, %0" \
                       : "=m"(y) : "m"(a), "m"(b), "m"(c) : "xmm0", "xmm1", "xmm2"); return y; })
#define REGISTER_ADDED(name) EXECUTE(32, (Halves a, Halves b, Halves c) { \
  Halves y; asm volatile(LOAD_WIDE_2 "vmovups %3, %%zmm2\n\t" name " %%zmm1, %%zmm0, %%zmm2\n\t" \
                         "vmovups %%zmm2, %0\n\tvzeroupper" \
                         : "=m"(y) : "m"(a), "m"(b), "m"(c) : "xmm0", "xmm1", "xmm2"); return y; })
// clang-format on

constexpr std::string_view needed = "AVX512-FP16";
constexpr std::string_view operand_rule = "a subnormal operand raises the denormal-operand exception";
constexpr std::string_view extremum_rule =
    "the second operand where one is a NaN, which is invalid, or where they are equal";

constexpr Mode nearest{};
constexpr Mode downward{.name = "toward_negative", .rounding = Rounding::toward_negative};
constexpr Mode upward{.name = "toward_positive", .rounding = Rounding::toward_positive};
constexpr Mode truncating{.name = "toward_zero", .rounding = Rounding::toward_zero};

class List {
 public:
  void append(const Instruction& instruction, const std::vector<Mode>& modes) {
    for (const Mode& mode : modes) {
      rows_.push_back(instruction);
      rows_.back().mode = mode;
      if (!mode.name.empty()) rows_.back().name += ", " + std::string(mode.name);
    }
  }

  /// The form of a single element, SH, and that of a whole register, PH.
  void append_pair(const std::string& name, Instruction row, Execute element, Execute whole,
                   const std::vector<Mode>& modes) {
    row.needs = needed;
    row.name = name + "sh xmm";
    row.execute = element;
    append(row, modes);
    row.name = name + "ph zmm";
    row.lanes = 32;
    row.execute = whole;
    append(row, modes);
  }

  std::vector<Instruction> take() { return std::move(rows_); }

 private:
  std::vector<Instruction> rows_;
};

const std::vector<Mode> all_modes{nearest, downward, upward, truncating};

void append_arithmetic(List& list) {
  const auto append = [&](const std::string& name, Model model, Execute element, Execute whole) {
    list.append_pair(
        name,
        {.group = "arithmetic", .domain = &domain_called("pairs"), .model = model, .rule = operand_rule},
        element, whole, all_modes);
  };
  append("vadd", x86::binary<binary16, fp16::add<binary16>>, ELEMENT_2("vaddsh"), REGISTER_2("vaddph"));
  append("vsub", x86::binary<binary16, fp16::subtract<binary16>>, ELEMENT_2("vsubsh"), REGISTER_2("vsubph"));
  append("vmul", x86::binary<binary16, fp16::multiply<binary16>>, ELEMENT_2("vmulsh"), REGISTER_2("vmulph"));
  append("vdiv", x86::binary<binary16, fp16::divide<binary16>>, ELEMENT_2("vdivsh"), REGISTER_2("vdivph"));
  list.append_pair("vsqrt",
                   {.group = "arithmetic",
                    .domain = &domain_called("codes"),
                    .model = x86::unary<binary16, fp16::sqrt<binary16>>,
                    .rule = operand_rule},
                   ELEMENT_1("vsqrtsh"), REGISTER_1("vsqrtph"), all_modes);
}

void append_fused(List& list) {
  const auto append = [&](const std::string& name, Model model, Execute element, Execute whole) {
    Instruction row{.group = "fused multiply-add",
                    .domain = &domain_called("triples"),
                    .model = model,
                    .rule = operand_rule};
    list.append_pair(name, row, element, whole, all_modes);
    row.name = name + "sh xmm, specials";
    row.domain = &special_triples;
    row.execute = element;
    row.needs = needed;
    list.append(row, {nearest});
  };
  append("vfmadd231", x86::fused<binary16, false, false>, ELEMENT_ADDED("vfmadd231sh"),
         REGISTER_ADDED("vfmadd231ph"));
  append("vfmsub231", x86::fused<binary16, false, true>, ELEMENT_ADDED("vfmsub231sh"),
         REGISTER_ADDED("vfmsub231ph"));
  append("vfnmadd231", x86::fused<binary16, true, false>, ELEMENT_ADDED("vfnmadd231sh"),
         REGISTER_ADDED("vfnmadd231ph"));
  append("vfnmsub231", x86::fused<binary16, true, true>, ELEMENT_ADDED("vfnmsub231sh"),
         REGISTER_ADDED("vfnmsub231ph"));
}

void append_extrema(List& list) {
  const auto append = [&](const std::string& name, Model model, Execute element, Execute whole) {
    list.append_pair(name,
                     {.group = "minimum, maximum",
                      .domain = &domain_called("pairs"),
                      .model = model,
                      .rule = extremum_rule},
                     element, whole, {nearest});
  };
  append("vmin", x86::extremum<binary16, Predicate::less>, ELEMENT_2("vminsh"), REGISTER_2("vminph"));
  append("vmax", x86::extremum<binary16, Predicate::greater>, ELEMENT_2("vmaxsh"), REGISTER_2("vmaxph"));
}

void append_conversions(List& list) {
  constexpr NumberType whole{NumberKind::signed_integer, 16}, natural{NumberKind::unsigned_integer, 16};
  const auto append = [&](const std::string& name, Model model, NumberType from, NumberType to,
                          Execute execute, const std::vector<Mode>& modes) {
    list.append({.name = name + " zmm",
                 .group = "integer conversion",
                 .domain = &domain_called("codes"),
                 .model = model,
                 .operands = {from},
                 .result = to,
                 .lanes = 32,
                 .execute = execute,
                 .needs = needed},
                modes);
  };
  append("vcvtph2w", x86::to_integer<binary16, std::int16_t>, half_number, whole, REGISTER_1("vcvtph2w"),
         all_modes);
  append("vcvtph2uw", x86::to_integer<binary16, std::uint16_t>, half_number, natural, REGISTER_1("vcvtph2uw"),
         all_modes);
  append("vcvttph2w", x86::truncated<binary16, std::int16_t>, half_number, whole, REGISTER_1("vcvttph2w"),
         {nearest});
  append("vcvttph2uw", x86::truncated<binary16, std::uint16_t>, half_number, natural,
         REGISTER_1("vcvttph2uw"), {nearest});
  append("vcvtw2ph", x86::from_integer<binary16, std::int16_t>, whole, half_number, REGISTER_1("vcvtw2ph"),
         all_modes);
  append("vcvtuw2ph", x86::from_integer<binary16, std::uint16_t>, natural, half_number,
         REGISTER_1("vcvtuw2ph"), all_modes);
}

}  // namespace

const std::vector<Instruction>& avx512_fp16_instructions() {
  static const std::vector<Instruction> rows = [] {
    List list;
    append_arithmetic(list);
    append_fused(list);
    append_extrema(list);
    append_conversions(list);
    return list.take();
  }();
  return rows;
}

/// CPUID, leaf 7, EDX bit 23 (volume 2); the registers are saved by the system where AVX512F can be used.
bool avx512_fp16_has(std::string_view feature) {
#ifdef __x86_64__
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (feature == needed)
    return __builtin_cpu_supports("avx512f") && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
           (d >> 23 & 1) != 0;
#endif
  return feature.empty();
}

}  // namespace experiments::validate_cpu
