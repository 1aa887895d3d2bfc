#pragma once

#include <cmath>
#include <cstddef>
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
        accumulates_(how.precision == AllReducePrecision::fp32_accumulation ||
                     how.precision == AllReducePrecision::bf16_fp32_accumulation),
        divisor_(static_cast<float>(predivisor(how.division, workers))),
        divisor_after_(static_cast<float>(workers) / divisor_) {}

  void divide_before(std::span<float> values, fp16::RoundingCounts* counts = nullptr) {
    if (divisor_ == 1) return;
    divide(values, divisor_, values);
    round_to_wire(precision_, values, counts);
  }
  /// Which of two NaNs a sum hands on is the processor's choice: all become one.
  void divide_after(std::span<float> sum) {
    if (divisor_after_ != 1) {
      divide(sum, divisor_after_, sum);
      round_to_wire(precision_, sum);
    }
    for (float& value : sum) value = std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value;
  }

  void add(std::span<float> sum, std::span<const float> term) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
    if (!accumulates_) round_to_wire(precision_, sum);
  }
  /// Where numbers are encoded next, which rounds them.
  void divide_before_sending(std::span<const float> values, std::span<float> quotients) {
    divide(values, divisor_, quotients);
  }

  /// A worker's own sums are rounded only where they are sent.
  bool accumulates() const { return accumulates_; }
  /// To what a worker sends, or keeps for the next step.
  void round_for_sending(std::span<float> sum) {
    if (accumulates_) round_to_wire(precision_, sum);
  }

 private:
  /// `quotients` may be the values' place.
  static void divide(std::span<const float> values, float divisor, std::span<float> quotients) {
    int exponent = 0;
    if (std::frexp(divisor, &exponent) == 0.5f) {  // a power of two, whose reciprocal is exact
      const float factor = 1 / divisor;
      for (std::size_t i = 0; i < values.size(); ++i) quotients[i] = values[i] * factor;
    } else {
      for (std::size_t i = 0; i < values.size(); ++i) quotients[i] = values[i] / divisor;
    }
  }

  AllReducePrecision precision_;
  bool accumulates_;
  float divisor_, divisor_after_;
};

}  // namespace sim
