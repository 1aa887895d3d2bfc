#pragma once
/// HalfHistogram's counts by DeviceHistogram of NVIDIA's CUB, to compare with.
///
/// Errors: std::runtime_error as in device_memory.h.

#include <cstddef>
#include <cstdint>

#include "fp16/cuda/device_memory.h"
#include "fp16/cuda/histogram.h"

namespace fp16::cuda {

/// What CUB is asked for.
enum class CubHistogram {
  even,  ///< HistogramEven over the bins' numbers, which an iterator computes while CUB reads
  range  ///< HistogramRange over the codes as they are, with the 87 codes at which bins begin
};

class CubHalfHistogram {
 public:
  /// For arrays of up to `count` codes, at most 2^31 - 1.
  CubHalfHistogram(CubHistogram method, std::size_t count);

  /// Counts anew: CUB begins at zero.
  void count(const std::uint16_t* codes, std::size_t count);
  /// Waits for the device.
  HalfExponents counts() const;

 private:
  CubHistogram method_;
  DeviceMemory totals_;
  DeviceMemory levels_;
  DeviceMemory scratch_;
};

}  // namespace fp16::cuda
