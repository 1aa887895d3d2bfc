#pragma once
/// Matrix products on the device, D = A B, whose order of summation is stated: every element of D is ONE
/// chain over k in ascending order that begins at c = +0, whatever the tile, the block and the size. No sum
/// is ever split, so each kernel is the twin of a software product (gemm.h of fp16/) bit for bit, NaNs aside:
///
///  - fma kernels: a fused multiply-add for every k, as Accumulation::fp32_fma_chain or fp16_fma_chain.
///  - tensor-core kernels: 16 of k at a time as TensorCoreAccumulation with the device's row of mma.h, k filled
///    up with +0 to a multiple of 16. On the devices of 8 products a step these are two steps, low k first.
///
/// Matrices are row-major without gaps: A m x k, B k x n, D m x n. Errors: std::invalid_argument and
/// std::runtime_error, each with one line.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "fp16/format.h"

namespace fp16::cuda {

/// What multiplies and adds.
enum class GemmInstruction {
  fma,       ///< FFMA, or HFMA2 on two neighbouring columns
  wmma,      ///< nvcuda::wmma 16 x 16 x 16, the plainest way to the tensor cores
  mma_sync,  ///< mma.sync m16n8k16 with ldmatrix and cp.async; m16n8k8 on compute capability 7.5
  wgmma      ///< wgmma.mma_async m64n256k16 with cp.async
};

/// A row of the table. An output narrower than the accumulator is that rounded once to nearest-even.
struct GemmKernel {
  std::string_view name;
  GemmInstruction instruction;
  Format operands;         ///< of A and B: binary16, or binary32 for an FP32 product
  Format accumulator;      ///< binary32 or binary16
  Format output;           ///< binary32 or binary16
  int least_capability;    ///< 10 * major + minor
  int largest_capability;  ///< for instructions that later devices lack
};

/// The table; the same without CUDA.
const std::vector<GemmKernel>& gemm_kernels();

/// Throws std::invalid_argument, with all names, if there is no row of that name.
const GemmKernel& find_gemm_kernel(std::string_view name);

/// Why the device cannot run `kernel`, as one line; empty if it can.
std::string unavailable_reason(const GemmKernel& kernel);

/// Matrices in the device's memory, aligned to 16 bytes, of the row's formats; binary16 as codes. D overlaps
/// neither A nor B.
struct GemmArguments {
  std::size_t m = 0;
  std::size_t n = 0;
  std::size_t k = 0;  ///< 0 makes D = +0
  const void* a = nullptr;
  const void* b = nullptr;
  void* d = nullptr;
};

/// The largest m, n and k.
inline constexpr std::size_t max_gemm_size = std::size_t{1} << 30;

/// Launches D = A B on the default stream and does not wait. Any size works; where k or n is not a multiple
/// of 8 the operands are copied element by element, which is slower.
///
/// Throws std::invalid_argument for a size above max_gemm_size, more than 2^31 - 1 tiles, or an address that
/// is not a multiple of 16; std::runtime_error as unavailable_reason.
void gemm(const GemmKernel& kernel, const GemmArguments& arguments);

namespace detail {

/// For a device of `capability`.
std::string unavailable_reason(const GemmKernel& kernel, int capability);

/// gemm for arguments that were checked.
void launch_gemm(const GemmKernel& kernel, const GemmArguments& arguments);

}  // namespace detail

}  // namespace fp16::cuda
