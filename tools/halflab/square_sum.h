#pragma once
/// Sums of squares of numbers whose squares leave the range of binary64.

#include <cmath>

namespace halflab {

/// A sum of squares, added up apart by magnitude in the order of the calls, the large and the small ones times a power of
/// two (J. L. Blue, "A Portable Fortran Program to Find the Euclidean Norm of a Vector", ACM TOMS 4, 1978).
class SquareSum {
 public:
  SquareSum() = default;
  /// A sum of squares of numbers of binary32, none of which leaves the range.
  explicit SquareSum(double sum) : medium_(sum) {}

  /// A finite value, so often.
  void add(double value, double times = 1) {
    const double magnitude = std::fabs(value);
    const double down = value * 0x1p-600, up = value * 0x1p600;
    if (magnitude > 0x1p480) {
      large_ += times * (down * down);
    } else if (magnitude < 0x1p-480) {
      small_ += times * (up * up);
    } else {
      medium_ += times * (value * value);
    }
  }
  SquareSum& operator+=(const SquareSum& other) {
    large_ += other.large_;
    medium_ += other.medium_;
    small_ += other.small_;
    return *this;
  }

  bool is_zero() const { return large_ == 0 && medium_ == 0 && small_ == 0; }
  /// The square root of the sum.
  double norm() const {
    return std::hypot(std::sqrt(large_) * 0x1p600, std::sqrt(medium_), std::sqrt(small_) * 0x1p-600);
  }

 private:
  double large_ = 0, medium_ = 0, small_ = 0;
};

}  // namespace halflab
