/// Numbers one at a time: headers, no library.

#include <halflab/fp16/block.h>
#include <halflab/fp16/elementary.h>
#include <halflab/fp16/half.h>

#include <cstdio>

static_assert(fp16::encode<fp16::e4m3>(1e6f, {.saturate = true}).bits == 0x7e);

int main() {
  const fp16::half third = fp16::half(1.0f) / fp16::half(3.0f);
  const fp16::half up = fp16::half::from_bits(
      fp16::divide<fp16::binary16>(0x3c00, 0x4200, {.rounding = fp16::Rounding::toward_positive}).bits);
  std::printf("1/3 = %.10g, upwards %.10g\n", double{float{third}}, double{float{up}});
  std::printf("an MXFP4 number has %g bits\n", fp16::mxfp4.bits_per_value());
  volatile float x = 0x1.87ap+1f;  // contracted to fused multiply-adds, it would end in 4
  std::printf("exp(%g) = %a\n", double{x}, double{fp16::exp(x)});
}
