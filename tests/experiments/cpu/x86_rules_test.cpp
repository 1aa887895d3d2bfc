/// The rules of AVX512-FP16 are those of x86's instructions on floats, which this processor may have: held to these on every
/// pair and triple of special floats and their neighbours.

#include <doctest/doctest.h>

#ifdef __x86_64__

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "experiments/cpu/instructions/x86_control.h"
#include "experiments/cpu/instructions/x86_rules.h"
#include "fp16/codec.h"
#include "fp16/formats.h"

namespace {

using namespace experiments::validate_cpu;
using fp16::binary32;
using fp16::binary64;
using fp16::Predicate;
using fp16::Rounding;

std::vector<std::uint32_t> special_floats() {
  std::vector<std::uint32_t> codes;
  for (const std::uint32_t magnitude :
       {0x00000000U, 0x00000001U, 0x007FFFFFU, 0x00800000U, 0x00800001U, 0x33800000U, 0x3F000000U,
        0x3F800000U, 0x3F800001U, 0x3FC00000U, 0x40490FDBU, 0x4EFFFFFFU, 0x4F000000U, 0x7F7FFFFFU,
        0x7F800000U, 0x7F800001U, 0x7FA00005U, 0x7FC00000U, 0x7FC01234U}) {
    codes.push_back(magnitude);
    codes.push_back(magnitude | 0x80000000U);
  }
  return codes;
}

const std::vector<Mode>& modes = x86::all_roundings;

/// What the instruction, on registers, gives and raises.
template <class Execute>
Outcome executed_on(const Mode& mode, Execute execute) {
  const Mxcsr control(mode);
  const std::uint32_t value = execute();
  return {.value = value, .exceptions = control.raised()};
}

void check(const std::string& name, Outcome found, Outcome expected, const Operands& operands) {
  if (found.value == expected.value && found.exceptions == expected.exceptions) return;
  INFO(name, " of ", operands.a, ", ", operands.b, ", ", operands.c);
  CHECK(found.value == expected.value);
  CHECK(exceptions_text(found.exceptions) == exceptions_text(expected.exceptions));
}

/// A function of float registers' codes.
#define FLOAT_2(name)                                                                                        \
  [](std::uint32_t a, std::uint32_t b) {                                                                     \
    float y;                                                                                                 \
    asm volatile(name " %2, %1, %0" : "=x"(y) : "x"(std::bit_cast<float>(a)), "x"(std::bit_cast<float>(b))); \
    return std::bit_cast<std::uint32_t>(y);                                                                  \
  }
#define FLOAT_ADDED(name)                                                                                    \
  [](std::uint32_t a, std::uint32_t b, std::uint32_t c) {                                                    \
    float y = std::bit_cast<float>(c);                                                                       \
    asm volatile(name " %2, %1, %0" : "+x"(y) : "x"(std::bit_cast<float>(a)), "x"(std::bit_cast<float>(b))); \
    return std::bit_cast<std::uint32_t>(y);                                                                  \
  }

template <class Instruction>
void check_pairs(const std::string& name, Model model, Instruction instruction) {
  for (const Mode& mode : modes) {
    for (const std::uint32_t a : special_floats()) {
      for (const std::uint32_t b : special_floats()) {
        const Operands operands{.a = a, .b = b};
        check(name, executed_on(mode, [&] { return instruction(a, b); }), model(operands, mode), operands);
      }
    }
  }
}

template <class Instruction>
void check_triples(const std::string& name, Model model, Instruction instruction) {
  for (const Mode& mode : modes) {
    for (const std::uint32_t a : special_floats()) {
      for (const std::uint32_t b : special_floats()) {
        for (const std::uint32_t c : special_floats()) {
          const Operands operands{.a = a, .b = b, .c = c};
          check(name, executed_on(mode, [&] { return instruction(a, b, c); }), model(operands, mode),
                operands);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("x86 rules: sums, products, quotients, roots and extrema of floats follow them") {
  if (!__builtin_cpu_supports("avx")) {
    MESSAGE("skipped: needs AVX");
    return;
  }
  check_pairs("vaddss", x86::binary<binary32, fp16::add<binary32>>, FLOAT_2("vaddss"));
  check_pairs("vsubss", x86::binary<binary32, fp16::subtract<binary32>>, FLOAT_2("vsubss"));
  check_pairs("vmulss", x86::binary<binary32, fp16::multiply<binary32>>, FLOAT_2("vmulss"));
  check_pairs("vdivss", x86::binary<binary32, fp16::divide<binary32>>, FLOAT_2("vdivss"));
  check_pairs("vminss", x86::extremum<binary32, Predicate::less>, FLOAT_2("vminss"));
  check_pairs("vmaxss", x86::extremum<binary32, Predicate::greater>, FLOAT_2("vmaxss"));
  // The second operand is the one whose root it is.
  const auto root = FLOAT_2("vsqrtss");
  for (const Mode& mode : modes) {
    for (const std::uint32_t a : special_floats())
      check("vsqrtss", executed_on(mode, [&] { return root(a, a); }),
            x86::unary<binary32, fp16::sqrt<binary32>>({.a = a}, mode), {.a = a});
  }
}

TEST_CASE("x86 rules: fused multiply-add of floats and its kin follow them") {
  if (!__builtin_cpu_supports("fma")) {
    MESSAGE("skipped: needs FMA");
    return;
  }
  check_triples("vfmadd231ss", x86::fused<binary32, false, false>, FLOAT_ADDED("vfmadd231ss"));
  check_triples("vfmsub231ss", x86::fused<binary32, false, true>, FLOAT_ADDED("vfmsub231ss"));
  check_triples("vfnmadd231ss", x86::fused<binary32, true, false>, FLOAT_ADDED("vfnmadd231ss"));
  check_triples("vfnmsub231ss", x86::fused<binary32, true, true>, FLOAT_ADDED("vfnmsub231ss"));
}

namespace {

template <int immediate>
void check_predicate() {
  const auto instruction = [](std::uint32_t a, std::uint32_t b) {
    float y;
    asm volatile("vcmpss %3, %2, %1, %0"
                 : "=x"(y)
                 : "x"(std::bit_cast<float>(a)), "x"(std::bit_cast<float>(b)), "i"(immediate));
    return std::bit_cast<std::uint32_t>(y) & 1;
  };
  check_pairs("vcmpss, " + std::to_string(immediate), x86::compared<binary32, immediate>, instruction);
}

template <int... immediates>
void check_predicates(std::integer_sequence<int, immediates...>) {
  (check_predicate<immediates>(), ...);
}

template <int immediate>
void check_multiple() {
  for (const Mode& mode : modes) {
    for (const std::uint32_t a : special_floats()) {
      const auto instruction = [&] {
        float y;
        asm volatile("vrndscaless %2, %1, %1, %0" : "=x"(y) : "x"(std::bit_cast<float>(a)), "i"(immediate));
        return std::bit_cast<std::uint32_t>(y);
      };
      const Operands operands{.a = a};
      check("vrndscaless, " + std::to_string(immediate), executed_on(mode, instruction),
            x86::rounded_to_multiple<binary32, immediate>(operands, mode), operands);
    }
  }
}

#define SETS_FLAGS(name)                                                      \
  [](std::uint32_t a, std::uint32_t b) {                                      \
    std::uint8_t zero, parity, carry;                                         \
    asm volatile(name " %4, %3\n\tsete %0\n\tsetp %1\n\tsetc %2"              \
                 : "=&q"(zero), "=&q"(parity), "=&q"(carry)                   \
                 : "x"(std::bit_cast<float>(a)), "x"(std::bit_cast<float>(b)) \
                 : "cc");                                                     \
    return static_cast<std::uint32_t>(zero << 2 | parity << 1 | carry);       \
  }

}  // namespace

TEST_CASE("x86 rules: comparisons of floats by all 32 predicates, and their flags, follow them") {
  if (!__builtin_cpu_supports("avx")) {
    MESSAGE("skipped: needs AVX");
    return;
  }
  check_predicates(std::make_integer_sequence<int, 32>());
  check_pairs("comiss", x86::flags_of_comparison<binary32, fp16::compare_signalling<binary32>>,
              SETS_FLAGS("comiss"));
  check_pairs("ucomiss", x86::flags_of_comparison<binary32, fp16::compare_quiet<binary32>>,
              SETS_FLAGS("ucomiss"));
}

TEST_CASE("x86 rules: floats rounded to multiples of powers of two follow them") {
  if (!__builtin_cpu_supports("avx512f")) {
    MESSAGE("skipped: needs AVX512F");
    return;
  }
  check_multiple<0>();
  check_multiple<1>();
  check_multiple<2>();
  check_multiple<3>();
  check_multiple<4>();
  check_multiple<12>();
  check_multiple<16>();
  check_multiple<68>();
  check_multiple<224>();
}

TEST_CASE("x86 rules: conversions of floats to and from doubles follow them") {
  for (const Mode& mode : modes) {
    for (const std::uint32_t a : special_floats()) {
      const auto check_double = [&](const char* name, Model model, std::uint64_t operand, auto instruction) {
        const Mxcsr control(mode);
        const std::uint64_t value = instruction();
        const Outcome found{.value = value, .exceptions = control.raised()};
        check(name, found, model({.a = operand}, mode), {.a = operand});
      };
      check_double("cvtss2sd", x86::widened<binary64, binary32>, a, [&] {
        double y = 0;
        asm volatile("cvtss2sd %1, %0" : "+x"(y) : "x"(std::bit_cast<float>(a)));
        return std::bit_cast<std::uint64_t>(y);
      });
      // Doubles around the float, and subnormal ones.
      const std::uint64_t wide = fp16::convert<binary64, binary32>(a).bits;
      for (const std::uint64_t operand : {wide, wide + 1, wide - 1, std::uint64_t{a}}) {
        check_double("cvtsd2ss", x86::narrowed<binary64, binary32>, operand, [&] {
          float y = 0;
          asm volatile("cvtsd2ss %1, %0" : "+x"(y) : "x"(std::bit_cast<double>(operand)));
          return std::uint64_t{std::bit_cast<std::uint32_t>(y)};
        });
      }
    }
  }
}

namespace {

template <typename Integer, class Rounded, class Truncated, class From>
void check_integers(Rounded rounded, Truncated truncated, From from) {
  for (const Mode& mode : modes) {
    for (const std::uint32_t a : special_floats()) {
      const float x = std::bit_cast<float>(a);
      const Operands operands{.a = a};
      check("to an integer", executed_on(mode, [&] { return rounded(x); }),
            x86::to_integer<binary32, Integer>(operands, mode), operands);
      check("to an integer, truncated", executed_on(mode, [&] { return truncated(x); }),
            x86::truncated<binary32, Integer>(operands, mode), operands);
      check("from an integer", executed_on(mode, [&] { return from(a); }),
            x86::from_integer<binary32, Integer>(operands, mode), operands);
    }
  }
}

#define TO_INTEGER(name)                             \
  [](float x) {                                      \
    std::uint32_t y;                                 \
    asm volatile(name " %1, %0" : "=r"(y) : "x"(x)); \
    return y;                                        \
  }
#define FROM_INTEGER(instruction)                 \
  [](std::uint32_t a) {                           \
    float y = 0;                                  \
    asm volatile(instruction : "+x"(y) : "r"(a)); \
    return std::bit_cast<std::uint32_t>(y);       \
  }

}  // namespace

TEST_CASE("x86 rules: conversions of floats to and from integers follow them") {
  check_integers<std::int32_t>(TO_INTEGER("cvtss2si"), TO_INTEGER("cvttss2si"),
                               FROM_INTEGER("cvtsi2ssl %1, %0"));
}

TEST_CASE("x86 rules: conversions of floats to and from unsigned integers follow them") {
  if (!__builtin_cpu_supports("avx512f")) {
    MESSAGE("skipped: needs AVX512F");
    return;
  }
  check_integers<std::uint32_t>(TO_INTEGER("vcvtss2usi"), TO_INTEGER("vcvttss2usi"),
                                FROM_INTEGER("vcvtusi2ssl %1, %0, %0"));
}

#else

TEST_CASE("x86 rules: they are held to the instructions of an x86 processor") {
  MESSAGE("skipped: needs an x86 processor");
}

#endif
