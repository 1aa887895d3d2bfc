#pragma once
/// How many values of an array on the device have which exponent, and what a cast to binary16 would lose of
/// them. Counts are exact and depend on no order; they add up over calls, which return before the device is
/// done.
///
/// Errors: std::runtime_error as in device_memory.h.

#include <array>
#include <cstddef>
#include <cstdint>

#include "fp16/cuda/device_memory.h"

namespace fp16::cuda {

/// Octaves 2^e <= |x| < 2^(e+1), of both signs, for the exponents of all finite values of a format.
template <int smallest, int largest>
struct ExponentCounts {
  static constexpr int min_exponent = smallest;
  static constexpr int max_exponent = largest;

  std::array<std::uint64_t, largest - smallest + 1> octaves{};  ///< the octave of min_exponent first
  std::uint64_t zero = 0;
  std::uint64_t infinite = 0;
  std::uint64_t nan = 0;

  std::uint64_t octave(int exponent) const {
    return octaves[static_cast<std::size_t>(exponent - min_exponent)];
  }
  bool operator==(const ExponentCounts&) const = default;
};

using HalfExponents = ExponentCounts<-24, 15>;
using FloatExponents = ExponentCounts<-149, 127>;

/// Histogram of binary16 values. 2 bytes an element; every thread has counters of its own in shared memory and executes
/// some eight instructions an element, whatever the values, which is meant to leave the limit to the memory's
/// bandwidth.
class HalfHistogram {
 public:
  HalfHistogram() : totals_(rows * sizeof(std::uint64_t)) { clear(); }

  void clear() { totals_.fill(0); }
  void add(const std::uint16_t* codes, std::size_t count);
  /// Waits for the device.
  HalfExponents counts() const;

  // The counters' order: what six bits of the exponent of the binary32 number |x| * 2^-16 + 2^-41 say, after it
  // was clamped to at most 1, and a NaN to 0. The sum is never a power of two too large: below 2^(e+1) the
  // largest |x| * 2^-16 is at least 2^-40 away from it.
  static constexpr unsigned rows = 64;
  static constexpr unsigned nan_row = 0;
  static constexpr unsigned zero_row = (127 - 41) % rows;
  static constexpr unsigned infinite_row = 127 % rows;

 private:
  DeviceMemory totals_;
};

/// What rounding to binary16 to nearest does: the fields of `fp16::RoundingCounts` (bulk.h) of these names.
struct CastLosses {
  std::uint64_t inexact = 0;
  std::uint64_t subnormal = 0;
  std::uint64_t flushed = 0;
  std::uint64_t overflowed = 0;

  bool operator==(const CastLosses&) const = default;
};

/// Histogram of binary32 values x, and of the cast of the exact products x * 2^log2_scale. 4 bytes an element; neighbouring
/// lanes count into different banks of shared memory, by its atomic additions, and some forty instructions an
/// element may take longer than the memory.
class FloatHistogram {
 public:
  /// Throws std::invalid_argument unless -126 <= log2_scale <= 127.
  explicit FloatHistogram(int log2_scale = 0);

  void clear() { totals_.fill(0); }
  void add(const float* values, std::size_t count);
  /// Both wait for the device.
  FloatExponents counts() const;
  CastLosses losses() const;

  // The counters' order: by biased exponent, then the octaves of the subnormals, then what the cast does.
  static constexpr unsigned zero_row = 0;
  static constexpr unsigned infinite_row = 255;
  static constexpr unsigned first_subnormal_row = 256;
  static constexpr unsigned nan_row = first_subnormal_row + 23;
  static constexpr unsigned first_loss_row = nan_row + 1;
  static constexpr unsigned rows = first_loss_row + 4;

 private:
  float scale_;
  DeviceMemory totals_;
};

}  // namespace fp16::cuda
