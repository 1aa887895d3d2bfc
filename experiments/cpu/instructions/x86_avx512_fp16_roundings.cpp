/// AVX512-FP16: rounding to a multiple of a power of two, VRNDSCALE.

#include <string>
#include <utility>

#include "experiments/cpu/instructions/x86_avx512_fp16.h"
#include "experiments/cpu/instructions/x86_rules.h"
#include "fp16/formats.h"

namespace experiments::validate_cpu::avx512_fp16 {
namespace {

using fp16::binary16;
using validation::domain_called;

template <int immediate>
constexpr Execute round_element() {
  return EXECUTE(
      1, (Half a) {
        Half y;
        asm volatile(LOAD_1 "vrndscalesh %2, %%xmm0, %%xmm0, %%xmm0" STORE
                     : "=m"(y)
                     : "m"(a), "i"(immediate)
                     : "xmm0");
        return y;
      });
}

template <int immediate>
constexpr Execute round_register() {
  return EXECUTE(
      32, (Halves a) {
        Halves y;
        asm volatile(LOAD_WIDE_1 "vrndscaleph %2, %%zmm0, %%zmm0" STORE_WIDE
                     : "=m"(y)
                     : "m"(a), "i"(immediate)
                     : "xmm0");
        return y;
      });
}

template <int immediate>
void append_immediate(List& list, const std::vector<Mode>& modes) {
  list.append_pair("vrndscale",
                   {.group = "rounding to integers",
                    .domain = &domain_called("codes"),
                    .model = x86::rounded_to_multiple<binary16, immediate>},
                   round_element<immediate>(), round_register<immediate>(), modes,
                   ", " + std::to_string(immediate));
}

}  // namespace

/// The rounding of each immediate, then that of MXCSR, the same without telling of inexact results, and multiples of smaller
/// powers of two.
void append_roundings(List& list) {
  append_immediate<0>(list, {nearest});
  append_immediate<1>(list, {nearest});
  append_immediate<2>(list, {nearest});
  append_immediate<3>(list, {nearest});
  append_immediate<4>(list, with(all_roundings, flushing));
  append_immediate<12>(list, all_roundings);
  append_immediate<16>(list, {nearest});
  append_immediate<68>(list, all_roundings);
  append_immediate<224>(list, {nearest});
}

}  // namespace experiments::validate_cpu::avx512_fp16
