#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "sim/trainer/allreduce.h"

namespace sim {

/// The divisions, additions and roundings of an all-reduce, an array at a time: the same whoever computes them, one
/// process for all workers or each worker for itself.
class AllReduceArithmetic {
 public:
  AllReduceArithmetic(const AllReduce& how, std::size_t workers)
      : precision_(how.precision),
        divisor_(static_cast<float>(predivisor(how.division, workers))),
        divisor_after_(static_cast<float>(workers) / divisor_) {}

  void divide_before(std::span<float> values, fp16::RoundingCounts* counts = nullptr) {
    divide(values, divisor_, counts);
  }
  /// Which of two NaNs a sum hands on is the processor's choice: all become one.
  void divide_after(std::span<float> sum) {
    divide(sum, divisor_after_, nullptr);
    for (float& value : sum) {
      if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
    }
  }

  void add(std::span<float> sum, std::span<const float> term) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
    if (precision_ == AllReducePrecision::fp16) round(sum);
  }

  /// To what a worker sends, or keeps for the next step.
  void round_for_sending(std::span<float> sum) {
    if (precision_ == AllReducePrecision::fp32_accumulation) round(sum);
  }

 private:
  /// In blocks that stay in a cache.
  static void round(std::span<float> values, fp16::RoundingCounts* counts = nullptr) {
    std::array<std::uint16_t, 4096> codes;
    while (!values.empty()) {
      const std::span<float> block = values.first(std::min(values.size(), codes.size()));
      const std::span<std::uint16_t> block_codes = std::span(codes).first(block.size());
      fp16::float_to_half(block, block_codes, {}, {.counts = counts});
      fp16::half_to_float(block_codes, block);
      values = values.subspan(block.size());
    }
  }

  void divide(std::span<float> values, float divisor, fp16::RoundingCounts* counts) {
    if (divisor == 1) return;
    for (float& value : values) value /= divisor;
    if (precision_ != AllReducePrecision::fp32) round(values, counts);
  }

  AllReducePrecision precision_;
  float divisor_, divisor_after_;
};

}  // namespace sim
