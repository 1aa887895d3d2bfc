/// AVX512-FP16: conversions between halves and floats, doubles and integers.

#include <concepts>
#include <string>

#include "experiments/cpu/instructions/x86_avx512_fp16.h"
#include "experiments/cpu/instructions/x86_rules.h"
#include "fp16/formats.h"

namespace experiments::validate_cpu::avx512_fp16 {
namespace {

using fp16::binary16;
using fp16::binary32;
using fp16::binary64;
using validation::Domain;
using validation::domain_called;
using validation::half_number;
using validation::NumberKind;

constexpr NumberType single_number{.bits = 32}, double_number{.bits = 64};
constexpr std::string_view daz_rule = "a subnormal operand is a zero, and raises nothing";

template <std::integral Integer>
constexpr NumberType integer_number{
    std::signed_integral<Integer> ? NumberKind::signed_integer : NumberKind::unsigned_integer,
    8 * sizeof(Integer)};

/// Every integer of 16 or 32 bits; of 64 bits those around rounding boundaries, then random ones.
template <std::integral Integer>
constexpr const Domain& integers() {
  if constexpr (sizeof(Integer) == 2) return domain_called("codes");
  if constexpr (sizeof(Integer) == 4) return domain_called("words");
  return domain_called("long_words");
}

// LANES converts whole registers, of as many lanes as 512 bits have of the wider type, and ELEMENT one element. ELEMENT_TO and
// ELEMENT_FROM convert between one element and a general register.
// clang-format off
#define LANES(lanes, From, from, To, to, name) EXECUTE(lanes, (Register<From, lanes> a) { \
  Register<To, lanes> y; \
  asm volatile("vmovups %1, %%" from "\n\t" name " %%" from ", %%" to "\n\tvmovups %%" to ", %0\n\tvzeroupper" \
               : "=m"(y) : "m"(a) : "xmm0"); \
  return y; })
#define ELEMENT(From, load, To, store, name) EXECUTE(1, (From a) { \
  To y; asm volatile(load " %1, %%xmm0\n\t" name " %%xmm0, %%xmm0, %%xmm0\n\t" store " %%xmm0, %0" \
                     : "=m"(y) : "m"(a) : "xmm0"); return y; })
#define ELEMENT_TO(Integer, name) EXECUTE(1, (Half a) { \
  Integer y; asm volatile(LOAD_1 name " %%xmm0, %0" : "=r"(y) : "m"(a) : "xmm0"); return y; })
#define ELEMENT_FROM(Integer, name) EXECUTE(1, (Integer a) { \
  Half y; asm volatile(name " %1, %%xmm0, %%xmm0" STORE : "=m"(y) : "r"(a) : "xmm0"); return y; })
// clang-format on

/// How the three instructions between halves and a type of integers are executed.
struct Forms {
  Execute to, to_truncated, from;
};

void append_widening(List& list) {
  const auto append = [&](const std::string& name, Model model, NumberType to, int lanes, Execute execute) {
    list.append({.name = name,
                 .group = "floating-point conversion",
                 .domain = &domain_called("codes"),
                 .model = model,
                 .result = to,
                 .lanes = lanes,
                 .execute = execute,
                 .rule = operand_rule},
                {nearest, flushing});
  };
  append("vcvtph2psx zmm", x86::widened<binary32>, single_number, 16,
         LANES(16, Half, "ymm0", float, "zmm0", "vcvtph2psx"));
  append("vcvtsh2ss xmm", x86::widened<binary32>, single_number, 1,
         ELEMENT(Half, "vmovsh", float, "vmovss", "vcvtsh2ss"));
  append("vcvtph2pd zmm", x86::widened<binary64>, double_number, 8,
         LANES(8, Half, "xmm0", double, "zmm0", "vcvtph2pd"));
  append("vcvtsh2sd xmm", x86::widened<binary64>, double_number, 1,
         ELEMENT(Half, "vmovsh", double, "vmovsd", "vcvtsh2sd"));
}

void append_narrowing(List& list) {
  const auto append = [&](const std::string& name, const Domain& domain, Model model, NumberType from,
                          int lanes, Execute execute) {
    Instruction row{.name = name,
                    .group = "floating-point conversion",
                    .domain = &domain,
                    .model = model,
                    .operands = {from},
                    .lanes = lanes,
                    .execute = execute,
                    .rule = operand_rule};
    list.append(row, with(all_roundings, ftz));
    row.rule = daz_rule;
    list.append(row, {daz});
  };
  const Domain& singles = domain_called("singles");
  const Domain& doubles = domain_called("doubles");
  append("vcvtps2phx zmm", singles, x86::narrowed<binary32>, single_number, 16,
         LANES(16, float, "zmm0", Half, "ymm0", "vcvtps2phx"));
  append("vcvtss2sh xmm", singles, x86::narrowed<binary32>, single_number, 1,
         ELEMENT(float, "vmovss", Half, "vmovsh", "vcvtss2sh"));
  append("vcvtpd2ph zmm", doubles, x86::narrowed<binary64>, double_number, 8,
         LANES(8, double, "zmm0", Half, "xmm0", "vcvtpd2phz"));
  append("vcvtsd2sh xmm", doubles, x86::narrowed<binary64>, double_number, 1,
         ELEMENT(double, "vmovsd", Half, "vmovsh", "vcvtsd2sh"));
}

/// Such as "vcvtph2w", "vcvttph2w" and "vcvtw2ph", where `half` is "ph" and `type` is "w".
template <std::integral Integer>
void append_integer(List& list, const std::string& half, const std::string& type,
                    const std::string& registers, int lanes, const Forms& forms) {
  const auto append = [&](const std::string& name, const Domain& domain, Model model, NumberType from,
                          NumberType to, Execute execute, const std::vector<Mode>& modes) {
    list.append({.name = name + " " + registers,
                 .group = "integer conversion",
                 .domain = &domain,
                 .model = model,
                 .operands = {from},
                 .result = to,
                 .lanes = lanes,
                 .execute = execute},
                modes);
  };
  const Domain& codes = domain_called("codes");
  append("vcvt" + half + "2" + type, codes, x86::to_integer<binary16, Integer>, half_number,
         integer_number<Integer>, forms.to, all_roundings);
  append("vcvtt" + half + "2" + type, codes, x86::truncated<binary16, Integer>, half_number,
         integer_number<Integer>, forms.to_truncated, {nearest});
  append("vcvt" + type + "2" + half, integers<Integer>(), x86::from_integer<binary16, Integer>,
         integer_number<Integer>, half_number, forms.from, all_roundings);
}

// clang-format off
#define REGISTER_FORMS(lanes, Integer, halves, integers, type, back) { \
  LANES(lanes, Half, halves, Integer, integers, "vcvtph2" type), \
  LANES(lanes, Half, halves, Integer, integers, "vcvttph2" type), \
  LANES(lanes, Integer, integers, Half, halves, "vcvt" back) }
#define ELEMENT_FORMS(Integer, type, back) { \
  ELEMENT_TO(Integer, "vcvtsh2" type), ELEMENT_TO(Integer, "vcvttsh2" type), ELEMENT_FROM(Integer, "vcvt" back) }
// clang-format on

}  // namespace

void append_conversions(List& list) {
  append_widening(list);
  append_narrowing(list);
  append_integer<std::int16_t>(list, "ph", "w", "zmm", 32,
                               REGISTER_FORMS(32, std::int16_t, "zmm0", "zmm0", "w", "w2ph"));
  append_integer<std::uint16_t>(list, "ph", "uw", "zmm", 32,
                                REGISTER_FORMS(32, std::uint16_t, "zmm0", "zmm0", "uw", "uw2ph"));
  append_integer<std::int32_t>(list, "ph", "dq", "zmm", 16,
                               REGISTER_FORMS(16, std::int32_t, "ymm0", "zmm0", "dq", "dq2ph"));
  append_integer<std::uint32_t>(list, "ph", "udq", "zmm", 16,
                                REGISTER_FORMS(16, std::uint32_t, "ymm0", "zmm0", "udq", "udq2ph"));
  append_integer<std::int64_t>(list, "ph", "qq", "zmm", 8,
                               REGISTER_FORMS(8, std::int64_t, "xmm0", "zmm0", "qq", "qq2phz"));
  append_integer<std::uint64_t>(list, "ph", "uqq", "zmm", 8,
                                REGISTER_FORMS(8, std::uint64_t, "xmm0", "zmm0", "uqq", "uqq2phz"));
  append_integer<std::int32_t>(list, "sh", "si", "r32", 1, ELEMENT_FORMS(std::int32_t, "si", "si2shl"));
  append_integer<std::uint32_t>(list, "sh", "usi", "r32", 1, ELEMENT_FORMS(std::uint32_t, "usi", "usi2shl"));
  append_integer<std::int64_t>(list, "sh", "si", "r64", 1, ELEMENT_FORMS(std::int64_t, "si", "si2shq"));
  append_integer<std::uint64_t>(list, "sh", "usi", "r64", 1, ELEMENT_FORMS(std::uint64_t, "usi", "usi2shq"));
}

}  // namespace experiments::validate_cpu::avx512_fp16
