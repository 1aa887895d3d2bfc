#pragma once
/// The arrays that stream through memory, and whether what kernels make of them is right.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "experiments/gpu/gpu_throughput/timed_work.h"
#include "fp16/cuda/device_memory.h"
#include "fp16/cuda/histogram.h"
#include "fp16/cuda/histogram_cub.h"
#include "fp16/cuda/streaming.h"
#include "fp16/exponent_histogram.h"

namespace experiments::gpu_throughput {

/// What one turn works on: the same values as floats and, others, as halves, and room for results.
struct StreamSet {
  StreamSet(const std::vector<float>& from_floats, const std::vector<std::uint16_t>& from_halves);

  std::uint16_t* scaled() { return halves.as<std::uint16_t>(); }

  fp16::cuda::DeviceMemory floats, halves, floats_out, halves_out;
  fp16::cuda::GradientList<std::uint16_t> in_place;
  fp16::cuda::GradientList<float> to_floats;
};

/// Sets of `elements` elements with the same gradients, together larger than four times the L2 cache. Each check runs
/// one kernel on the first set and compares what it leaves there with the CPU's result.
class Streams {
 public:
  /// Throws std::runtime_error where the device has no room.
  explicit Streams(std::size_t elements);

  std::size_t elements() const { return elements_; }
  /// The set for turn `turn`, cycling.
  StreamSet& set(std::size_t turn) { return *sets_[turn % sets_.size()]; }
  fp16::cuda::HalfHistogram& half_histogram() { return half_histogram_; }
  fp16::cuda::FloatHistogram& float_histogram() { return float_histogram_; }
  /// Method 0 is even, 1 range; none where cub_absent() says why.
  fp16::cuda::CubHalfHistogram& cub(std::size_t method) { return cub_[method]; }
  const std::string& cub_absent() const { return cub_absent_; }
  /// Where unscaling says whether it found a number that is not finite.
  std::uint32_t* found() { return found_.as<std::uint32_t>(); }

  Check check_copy();
  Check check_to_half();
  Check check_to_float();
  Check check_unscale_in_place();
  Check check_unscale_to_float();
  Check check_half_histogram();
  Check check_cub(std::size_t method);
  Check check_float_histogram();

 private:
  StreamSet& first() { return *sets_.front(); }
  void open_cub();
  template <typename Unscaled>
  std::uint32_t unscale(const fp16::cuda::GradientList<Unscaled>& gradients);
  Check with_flag(Check check, std::uint32_t found) const;
  std::vector<float> widened() const;
  std::vector<float> unscaled() const;
  Check check_counts(const fp16::cuda::HalfExponents& counts) const;
  template <typename Counts>
  Check compare_counts(const Counts& counts, const fp16::ExponentHistogram& expected) const;

  std::size_t elements_;
  std::vector<float> floats_;
  std::vector<std::uint16_t> halves_;
  std::vector<std::unique_ptr<StreamSet>> sets_;
  fp16::cuda::HalfHistogram half_histogram_;
  fp16::cuda::FloatHistogram float_histogram_;
  std::vector<fp16::cuda::CubHalfHistogram> cub_;
  std::string cub_absent_;
  fp16::cuda::DeviceMemory found_;
};

}  // namespace experiments::gpu_throughput
