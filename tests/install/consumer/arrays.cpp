/// Arrays, functions and matrix products: headers and the library.

#include <halflab/fp16/bulk.h>
#include <halflab/fp16/gemm.h>
#include <halflab/fp16/half.h>
#include <halflab/fp16/math.h>

#include <array>
#include <cstdint>
#include <cstdio>

int main() {
  const std::array<float, 4> numbers{1.0f, 0x1p-25f, 0x1.ffdffep15f, 65520.0f};
  std::array<std::uint16_t, 4> codes{};
  fp16::RoundingCounts counts;
  fp16::float_to_half(numbers, codes, {}, {.threads = 2, .counts = &counts});
  for (const std::uint16_t code : codes) std::printf("%04x ", static_cast<unsigned>(code));
  std::printf("flushed %d, overflowed %d\n", static_cast<int>(counts.flushed),
              static_cast<int>(counts.overflowed));

  std::printf("e = %04x\n", static_cast<unsigned>(fp16::math::exp(fp16::half(1.0f)).bits()));

  const std::array<std::uint16_t, 4> a{0x3c00, 0x4000, 0x4200, 0x4400};  // 1 2, 3 4
  const std::array<float, 4> b{5, 6, 7, 8};
  std::array<float, 4> c{};
  fp16::gemm({.data = a.data(), .storage = fp16::binary16, .rows = 2, .columns = 2, .row_stride = 2},
             {.data = b.data(), .storage = fp16::binary32, .rows = 2, .columns = 2, .row_stride = 2},
             c.data(), 2, fp16::Accumulation::fp32_fma_chain);
  std::printf("%g %g %g %g\n", double{c[0]}, double{c[1]}, double{c[2]}, double{c[3]});
}
