/// CUDA's halves, another library's <fp16/fp16.h> and ours in one file, each by its qualified name.

#if __has_include(<cuda_fp16.h>)
#include <cuda_fp16.h>
#endif
#include <fp16/fp16.h>
#include <halflab/fp16/numbers.h>

#include <cstdint>
#include <cstdio>
#include <type_traits>

#if __has_include(<fp16/half.h>)
#error "our folder fp16/ is on the include path of a user, where other libraries have one"
#endif

#if __has_include(<cuda_fp16.h>)
static_assert(!std::is_same_v<::half, fp16::half>);

static float cuda_value(std::uint16_t code) {
  return ::__half2float(::__half(::__half_raw{code}));
}
#else
static float cuda_value(std::uint16_t code) {
  return fp16::half_bits_to_float(code);
}
#endif

static bool same(float a, float b) {
  return a == b || (a != a && b != b);
}

int main() {
  int agree = 0;
  for (int i = 0; i < 65536; ++i) {
    const auto code = static_cast<std::uint16_t>(i);
    const float ours = fp16::half::from_bits(code);
    agree += same(ours, ::fp16_ieee_to_fp32_value(code)) && same(ours, cuda_value(code));
  }
  std::printf("%d of 65536 codes have the same value\n", agree);
}
