#pragma once
/// What our code is measured against. Each is a translation unit of its own, compiled for this very machine
/// (-O3 -march=native -DNDEBUG).

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace bench {

using Half = std::uint16_t;

/// out[i] = a[i] op b[i] (op c[i]); operands that an operation lacks are not read.
using HalfLoop = void (*)(const Half* a, const Half* b, const Half* c, Half* out, std::size_t count);

inline constexpr std::array<std::string_view, 5> half_loop_names{"add", "mul", "div", "sqrt", "fma"};

/// The arrays that the operation reads and writes.
constexpr int arrays_of_operation(std::size_t operation) {
  return half_loop_names[operation] == "sqrt" ? 2 : half_loop_names[operation] == "fma" ? 4 : 3;
}
/// Two for a multiply-add.
constexpr int operations_of_operation(std::size_t operation) {
  return half_loop_names[operation] == "fma" ? 2 : 1;
}

/// Loops over arrays of halves. A null: the peer does not have it, or this processor cannot run it.
struct HalfLoops {
  std::string_view name;
  void (*float_to_half)(const float* in, Half* out, std::size_t count);
  void (*half_to_float)(const Half* in, float* out, std::size_t count);
  std::array<HalfLoop, half_loop_names.size()> operations;  ///< in the order of half_loop_names
};

/// Plain loops over the F16C instructions and a float operation between them, `count` a multiple of 16: the
/// limit. Its fma is exact: it rounds to odd at 24 bits, then to half.
extern const HalfLoops avx2_limit;
extern const HalfLoops avx512_limit;
/// The same over AArch64's conversions; and over its arithmetic of halves, where that is no limit of conversions.
extern const HalfLoops neon_limit;
extern const HalfLoops neon_fp16_limit;

/// The types of other libraries, one element at a time as their users write it.
extern const HalfLoops imath;
extern const HalfLoops eigen_half;
extern const HalfLoops float16;  ///< the compiler's own

/// What block formats cannot do without, and no rounding: in blocks of 32, of which `count` is a multiple, out[i] is
/// in[i] times the power of two that the largest magnitude of the block gives, as an integer.
void scale_blocks(const float* in, std::int8_t* out, std::size_t count);

/// The sum of the whole 64-bit words of an array: what only to read it takes.
std::uint64_t sum_words(const void* data, std::size_t bytes);

/// At least `count` multiply-adds of floats that stay in registers.
float multiply_adds(std::size_t count);

/// At least `count` products of 32-bit words, each of 64 bits, that stay in registers.
std::uint64_t widening_products(std::size_t count);

/// c = a * b, all n x n row-major, by Eigen.
void eigen_product(const float* a, const float* b, float* c, std::size_t n);
/// The same, compiled for AVX2 and FMA alone.
void eigen_product_avx2(const float* a, const float* b, float* c, std::size_t n);

}  // namespace bench
