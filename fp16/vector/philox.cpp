#include "fp16/philox.h"

#include <algorithm>
#include <array>

#include "fp16/vector/philox_kernels.h"

namespace fp16 {

void detail::philox_portable(const Philox& philox, std::uint64_t number, std::uint32_t* out,
                             std::size_t groups) {
  for (const std::uint32_t* const end = out + groups * philox_group; out != end; out += 4)
    std::ranges::copy(philox.block(number++), out);
}

detail::PhiloxKernel detail::philox_kernel(VectorPath path) {
  require_available(path);
  switch (path) {
#ifdef __x86_64__
    case VectorPath::avx512:
      return philox_avx512;
    case VectorPath::avx2_f16c:
      return philox_avx2;
#elif defined(__aarch64__)
    case VectorPath::neon_fp16:
    case VectorPath::neon:
      return philox_neon;
#endif
    default:
      return philox_portable;
  }
}

void fill_bits(const Philox& philox, std::uint64_t first, std::span<std::uint32_t> out, VectorPath path) {
  constexpr std::size_t piece = 1024;
  const detail::PhiloxKernel kernel = detail::philox_kernel(path);
  std::array<std::uint32_t, detail::philox_buffer_size(piece)> buffer;
  for (std::size_t i = 0; i < out.size(); i += piece) {
    const std::size_t count = std::min(piece, out.size() - i);
    const std::uint32_t* words = detail::fill_buffer(kernel, philox, first + i, count, buffer.data());
    std::copy_n(words, count, out.data() + i);
  }
}

}  // namespace fp16
