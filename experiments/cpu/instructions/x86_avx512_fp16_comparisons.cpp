/// AVX512-FP16: comparisons by each of 32 predicates, and those that set the flags of the processor.

#include <cstddef>
#include <string>
#include <utility>

#include "experiments/cpu/instructions/x86_avx512_fp16.h"
#include "experiments/cpu/instructions/x86_rules.h"
#include "fp16/formats.h"

namespace experiments::validate_cpu::avx512_fp16 {
namespace {

using fp16::binary16;
using validation::domain_called;

/// Zero, parity and carry, the first in the highest bit.
constexpr NumberType flags_of_processor{validation::NumberKind::unsigned_integer, 3};

// Compilers refuse to name a mask register to a processor without any, which they use none of.
#ifdef __AVX512F__
#define MASK_CLOBBERED , "k1"
#else
#define MASK_CLOBBERED
#endif

// clang-format off
#define SETS_FLAGS(name) EXECUTE(1, (Half a, Half b) { \
  std::uint8_t zero, parity, carry; \
  asm volatile("vmovsh %3, %%xmm0\n\tvmovsh %4, %%xmm1\n\t" name " %%xmm1, %%xmm0\n\t" \
               "sete %0\n\tsetp %1\n\tsetc %2" \
               : "=&q"(zero), "=&q"(parity), "=&q"(carry) : "m"(a), "m"(b) : "xmm0", "xmm1", "cc"); \
  return static_cast<Half>(zero << 2 | parity << 1 | carry); })
// clang-format on

template <int immediate>
constexpr Execute compare_element() {
  return EXECUTE(
      1, (Half a, Half b) {
        unsigned mask = 0;
        asm volatile(LOAD_2 "vcmpsh %3, %%xmm1, %%xmm0, %%k1\n\tkmovd %%k1, %0"
                     : "=r"(mask)
                     : "m"(a), "m"(b), "i"(immediate)
                     : "xmm0", "xmm1" MASK_CLOBBERED);
        return static_cast<Half>(mask);
      });
}

template <int immediate>
constexpr Execute compare_register() {
  return EXECUTE(
      32, (Halves a, Halves b) {
        std::uint32_t mask = 0;
        asm volatile(LOAD_WIDE_2 "vcmpph %3, %%zmm1, %%zmm0, %%k1\n\tkmovd %%k1, %0\n\tvzeroupper"
                     : "=r"(mask)
                     : "m"(a), "m"(b), "i"(immediate)
                     : "xmm0", "xmm1" MASK_CLOBBERED);
        Halves y{};
        for (std::size_t lane = 0; lane < y.size(); ++lane) y[lane] = static_cast<Half>(mask >> lane & 1);
        return y;
      });
}

template <int immediate>
void append_predicate(List& list) {
  list.append_pair("vcmp",
                   {.group = "comparison",
                    .domain = &domain_called("pairs"),
                    .model = x86::compared<binary16, immediate>,
                    .result = validation::truth,
                    .rule = operand_rule},
                   compare_element<immediate>(), compare_register<immediate>(), {nearest},
                   ", " + std::to_string(immediate));
}

template <int... immediates>
void append_predicates(List& list, std::integer_sequence<int, immediates...>) {
  (append_predicate<immediates>(list), ...);
}

}  // namespace

void append_comparisons(List& list) {
  append_predicates(list, std::make_integer_sequence<int, 32>());
  const auto append = [&](const std::string& name, Model model, Execute execute) {
    list.append({.name = name + " xmm",
                 .group = "comparison",
                 .domain = &domain_called("pairs"),
                 .model = model,
                 .result = flags_of_processor,
                 .execute = execute,
                 .rule = operand_rule},
                {nearest, flushing});
  };
  append("vcomish", x86::flags_of_comparison<binary16, fp16::compare_signalling<binary16>>,
         SETS_FLAGS("vcomish"));
  append("vucomish", x86::flags_of_comparison<binary16, fp16::compare_quiet<binary16>>,
         SETS_FLAGS("vucomish"));
}

}  // namespace experiments::validate_cpu::avx512_fp16
