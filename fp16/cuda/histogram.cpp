#include "fp16/cuda/histogram.h"

#include <bit>
#include <stdexcept>
#include <string>
#include <vector>

namespace fp16::cuda {

namespace {

float power_of_two(int exponent) {
  if (exponent < -126 || exponent > 127)
    throw std::invalid_argument("histogram: log2_scale is " + std::to_string(exponent) +
                                "; allowed: from -126 to 127");
  return std::bit_cast<float>((exponent + 127) << 23);
}

}  // namespace

HalfExponents HalfHistogram::counts() const {
  const std::vector<std::uint64_t> totals = totals_.to_host<std::uint64_t>();
  HalfExponents counts{.zero = totals[zero_row], .infinite = totals[infinite_row], .nan = totals[nan_row]};
  for (std::size_t octave = 0; octave < counts.octaves.size(); ++octave)
    counts.octaves[octave] = totals[zero_row + 1 + octave];
  return counts;
}

FloatHistogram::FloatHistogram(int log2_scale)
    : scale_(power_of_two(log2_scale)), totals_(rows * sizeof(std::uint64_t)) {
  clear();
}

FloatExponents FloatHistogram::counts() const {
  constexpr std::size_t subnormal_octaves = nan_row - first_subnormal_row;
  const std::vector<std::uint64_t> totals = totals_.to_host<std::uint64_t>();
  FloatExponents counts{.zero = totals[zero_row], .infinite = totals[infinite_row], .nan = totals[nan_row]};
  for (std::size_t octave = 0; octave < counts.octaves.size(); ++octave)
    counts.octaves[octave] = octave < subnormal_octaves ? totals[first_subnormal_row + octave]
                                                        : totals[1 + octave - subnormal_octaves];
  return counts;
}

CastLosses FloatHistogram::losses() const {
  const std::vector<std::uint64_t> totals = totals_.to_host<std::uint64_t>();
  return {.inexact = totals[first_loss_row],
          .subnormal = totals[first_loss_row + 1],
          .flushed = totals[first_loss_row + 2],
          .overflowed = totals[first_loss_row + 3]};
}

}  // namespace fp16::cuda
