#pragma once
/// The pen strokes of the ten digits, in several writing styles each.

#include <span>
#include <vector>

namespace sim {

struct Point {
  float x = 0;
  float y = 0;
};

/// Control points, through which the pen moves in a smooth curve.
using Stroke = std::vector<Point>;

/// Strokes in a square of 100 x 100: x to the right, y downwards.
using DigitStyle = std::vector<Stroke>;

/// The styles of a digit 0 .. 9.
std::span<const DigitStyle> digit_styles(int digit);

}  // namespace sim
