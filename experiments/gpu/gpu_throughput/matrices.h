#pragma once
/// The matrices that products are timed and checked on, and what the products should be.

#include <cstddef>
#include <functional>
#include <vector>

#include "fp16/cuda/device_memory.h"
#include "fp16/cuda/gemm.h"
#include "fp16/format.h"
#include "fp16/gemm.h"

namespace experiments::gpu_throughput {

/// Matrices of small integers, whose products and sums are exact in every format and order; and of numbers that
/// fill their formats.
enum class Contents { integers, dense };

/// A and B in the formats that rows take them in, and D.
struct Operands {
  fp16::cuda::DeviceMemory half_a, half_b, float_a, float_b, d;

  const void* a(fp16::Format format) const {
    return (format == fp16::binary32 ? float_a : half_a).as<void>();
  }
  const void* b(fp16::Format format) const {
    return (format == fp16::binary32 ? float_b : half_b).as<void>();
  }
};

/// Square matrices on the device: sets of dense ones, which hold the same numbers and are together larger than the
/// caches, and one of integers.
class Matrices {
 public:
  /// Throws std::runtime_error where the device has no room.
  Matrices(int edge, bool with_floats);

  std::size_t edge() const { return edge_; }
  /// The operands for turn `turn`, cycling.
  Operands& dense(std::size_t turn) { return dense_[turn % dense_.size()]; }
  Operands& integers() { return integers_; }

  /// Some elements of D, which is in the format `output`: of the first, a middle and the last row.
  std::vector<float> sampled(const Operands& operands, fp16::Format output) const;

  /// C = A B, of `c_stride` elements a row.
  using Multiply = std::function<void(const fp16::MatrixOperand& a, const fp16::MatrixOperand& b, float* c,
                                      std::size_t c_stride)>;

  /// What these elements should be: the products that `multiply` makes of operands in the formats of a row,
  /// rounded to its output.
  std::vector<float> expected(Contents contents, const fp16::cuda::GemmKernel& formats,
                              const Multiply& multiply) const;

 private:
  std::vector<Operands> operands_of(Contents contents, std::size_t sets) const;

  std::size_t edge_;
  bool with_floats_;
  std::vector<std::size_t> sampled_rows_, sampled_columns_;
  Operands integers_;
  std::vector<Operands> dense_;
};

}  // namespace experiments::gpu_throughput
