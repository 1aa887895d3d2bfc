/// AVX512-FP16: half arithmetic of x86-64, in a single element and in registers of 512 bits.

#include "experiments/cpu/instructions/x86_avx512_fp16.h"

#include "experiments/cpu/instructions/family.h"
#include "experiments/cpu/instructions/inputs.h"
#include "experiments/cpu/instructions/x86_rules.h"
#include "fp16/formats.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace experiments::validate_cpu {
namespace avx512_fp16 {
namespace {

using fp16::binary16;
using fp16::Predicate;
using validation::domain_called;

// clang-format off
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
  Half y; asm volatile(LOAD_2 "vmovsh %3, %%xmm2\n\t" name " %%xmm1, %%xmm0, %%xmm2\n\tvmovsh %%xmm2, %0" \
                       : "=m"(y) : "m"(a), "m"(b), "m"(c) : "xmm0", "xmm1", "xmm2"); return y; })
#define REGISTER_ADDED(name) EXECUTE(32, (Halves a, Halves b, Halves c) { \
  Halves y; asm volatile(LOAD_WIDE_2 "vmovups %3, %%zmm2\n\t" name " %%zmm1, %%zmm0, %%zmm2\n\t" \
                         "vmovups %%zmm2, %0\n\tvzeroupper" \
                         : "=m"(y) : "m"(a), "m"(b), "m"(c) : "xmm0", "xmm1", "xmm2"); return y; })
// clang-format on

constexpr std::string_view extremum_rule =
    "the second operand where one is a NaN, which is invalid, or where they are equal";

const std::vector<Mode> arithmetic_modes = with(all_roundings, flushing);

void append_arithmetic(List& list) {
  const auto append = [&](const std::string& name, Model model, Execute element, Execute whole) {
    list.append_pair(
        name,
        {.group = "arithmetic", .domain = &domain_called("pairs"), .model = model, .rule = operand_rule},
        element, whole, arithmetic_modes);
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
                   ELEMENT_1("vsqrtsh"), REGISTER_1("vsqrtph"), arithmetic_modes);
}

void append_fused(List& list) {
  const auto append = [&](const std::string& name, Model model, Execute element, Execute whole) {
    Instruction row{.group = "fused multiply-add",
                    .domain = &domain_called("triples"),
                    .model = model,
                    .rule = operand_rule};
    list.append_pair(name, row, element, whole, arithmetic_modes);
    row.name = name + "sh xmm, specials";
    row.domain = &special_triples;
    row.execute = element;
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

}  // namespace
}  // namespace avx512_fp16

const std::vector<Instruction>& avx512_fp16_instructions() {
  static const std::vector<Instruction> rows = [] {
    avx512_fp16::List list;
    avx512_fp16::append_arithmetic(list);
    avx512_fp16::append_fused(list);
    avx512_fp16::append_extrema(list);
    avx512_fp16::append_comparisons(list);
    avx512_fp16::append_conversions(list);
    avx512_fp16::append_roundings(list);
    return list.take();
  }();
  return rows;
}

/// CPUID, leaf 7, EDX bit 23 (volume 2); the registers are saved by the system where AVX512F can be used.
bool avx512_fp16_has(std::string_view feature) {
#ifdef __x86_64__
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (feature == avx512_fp16::needed)
    return __builtin_cpu_supports("avx512f") && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
           (d >> 23 & 1) != 0;
#endif
  return feature.empty();
}

}  // namespace experiments::validate_cpu
