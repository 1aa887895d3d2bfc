#include "sim/data/digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/data/digit_styles.h"
#include "sim/data/random_sequence.h"
#include "sim/tensor/random.h"

namespace sim {
namespace {

constexpr int side = 28;
constexpr int classes = 10;
constexpr std::uint64_t draws_per_image = 4096;
using Canvas = std::array<float, side * side>;  ///< ink, 0 .. 1
using Line = std::vector<Point>;                ///< pixels; straight pieces between neighbouring points

/// How one writer, once, brings a style onto the canvas, centred at 0: a gentle quadratic warp, then
/// stretch, slant and turn.
class Hand {
 public:
  explicit Hand(RandomSequence& random)
      : unsteadiness_(random.uniform(0.01f, 0.075f)),
        width_(random.uniform(10.5f, 16.0f)),
        height_(random.uniform(17.0f, 20.0f)),
        slant_(random.normal(0.25f)) {
    // Turning by the half-angle's tangent needs no sine or cosine.
    const float t = random.normal(0.07f);
    cosine_ = (1.0f - t * t) / (1.0f + t * t);
    sine_ = 2.0f * t / (1.0f + t * t);
    for (float& coefficient : warp_) coefficient = random.normal(0.23f);
  }

  Point place(Point p, RandomSequence& random) const {
    const float x = 0.01f * p.x - 0.5f + random.normal(unsteadiness_);
    const float y = 0.01f * p.y - 0.5f + random.normal(unsteadiness_);
    const float warped_x = x + warp_[0] * x * y + warp_[1] * y * y;
    const float warped_y = y + warp_[2] * x * y + warp_[3] * x * x;
    const float u = width_ * warped_x - slant_ * height_ * warped_y;
    const float v = height_ * warped_y;
    return {cosine_ * u - sine_ * v, sine_ * u + cosine_ * v};
  }

 private:
  float unsteadiness_, width_, height_, slant_;
  float cosine_, sine_;
  std::array<float, 4> warp_;
};

/// A Catmull-Rom spline through the control points.
Line smooth(const Line& control) {
  constexpr int pieces = 5;
  const auto at = [&](std::ptrdiff_t i) {
    return control[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(i, 0, std::ssize(control) - 1))];
  };
  const auto blend = [](float a, float b, float c, float d, float t) {
    return b + 0.5f * t * (c - a + t * (2.0f * a - 5.0f * b + 4.0f * c - d + t * (3.0f * (b - c) + d - a)));
  };
  Line line{control.front()};
  for (std::ptrdiff_t i = 0; i + 1 < std::ssize(control); ++i) {
    const Point a = at(i - 1), b = at(i), c = at(i + 1), d = at(i + 2);
    for (int piece = 1; piece <= pieces; ++piece) {
      const float t = static_cast<float>(piece) / pieces;
      line.push_back({blend(a.x, b.x, c.x, d.x, t), blend(a.y, b.y, c.y, d.y, t)});
    }
  }
  return line;
}

float length(Point from, Point to) {
  const float x = to.x - from.x, y = to.y - from.y;
  return std::sqrt(x * x + y * y);
}

/// The centre of mass of all lines, as if the pen's ink were even.
Point centre_of(std::span<const Line> lines) {
  float x = 0, y = 0, total = 0;
  for (const Line& line : lines) {
    for (std::size_t i = 1; i < line.size(); ++i) {
      const float weight = length(line[i - 1], line[i]);
      x += weight * 0.5f * (line[i - 1].x + line[i].x);
      y += weight * 0.5f * (line[i - 1].y + line[i].y);
      total += weight;
    }
  }
  return {x / total, y / total};
}

float distance_to_segment(Point p, Point a, Point b) {
  const float x = b.x - a.x, y = b.y - a.y;
  const float squared = x * x + y * y;
  const float along = squared > 0.0f ? ((p.x - a.x) * x + (p.y - a.y) * y) / squared : 0.0f;
  const float t = std::clamp(along, 0.0f, 1.0f);
  return length(p, {a.x + t * x, a.y + t * y});
}

/// Inks every pixel whose centre lies under a round pen moved from a to b; ink fades over one pixel at the
/// rim.
void draw_segment(Canvas& canvas, Point a, Point b, float pen_radius) {
  const float reach = pen_radius + 0.5f;
  const auto first = [](float low) { return std::clamp(static_cast<int>(std::ceil(low)), 0, side); };
  const auto last = [](float high) { return std::clamp(static_cast<int>(std::floor(high)), -1, side - 1); };
  for (int y = first(std::min(a.y, b.y) - reach); y <= last(std::max(a.y, b.y) + reach); ++y) {
    for (int x = first(std::min(a.x, b.x) - reach); x <= last(std::max(a.x, b.x) + reach); ++x) {
      const Point pixel{static_cast<float>(x), static_cast<float>(y)};
      const float ink = std::clamp(reach - distance_to_segment(pixel, a, b), 0.0f, 1.0f);
      float& value = canvas[static_cast<std::size_t>(y * side + x)];
      value = std::max(value, ink);
    }
  }
}

Canvas draw(const DigitStyle& style, RandomSequence& random) {
  const Hand hand(random);
  std::vector<Line> lines;
  for (const Stroke& stroke : style) {
    Line control;
    for (Point point : stroke) control.push_back(hand.place(point, random));
    lines.push_back(smooth(control));
  }
  const Point centre = centre_of(lines);
  const Point shift{0.5f * (side - 1) - centre.x + random.normal(0.6f),
                    0.5f * (side - 1) - centre.y + random.normal(0.6f)};
  const float pen_radius = random.uniform(0.8f, 1.9f);
  Canvas canvas{};
  for (const Line& line : lines) {
    for (std::size_t i = 1; i < line.size(); ++i) {
      draw_segment(canvas, {line[i - 1].x + shift.x, line[i - 1].y + shift.y},
                   {line[i].x + shift.x, line[i].y + shift.y}, pen_radius);
    }
  }
  return canvas;
}

/// Uneven ink, and now and then a speck of dust on the paper.
float with_noise(float ink, RandomSequence& random) {
  const float noise = random.uniform(0.0f, 1.0f);
  if (ink > 0.0f) return ink * (1.0f - 0.1f * noise);
  constexpr float dust = 0.005f;
  return noise < dust ? noise / dust * 0.5f : 0.0f;
}

LabelledImages draw_set(const DigitsOptions& options, std::string_view purpose, std::size_t size) {
  const RandomStream stream(options.seed, purpose);
  LabelledImages images;
  images.pixels.reserve(size * side * side);
  for (std::size_t image = 0; image < size; ++image) {
    RandomSequence random(stream, image * draws_per_image);
    const int digit = static_cast<int>(image % classes);
    const auto styles = digit_styles(digit);
    for (float ink : draw(styles[random.below(styles.size())], random)) {
      images.pixels.push_back(static_cast<std::uint8_t>(255.0f * with_noise(ink, random) + 0.5f));
    }
    images.labels.push_back(static_cast<std::uint8_t>(digit));
  }
  return images;
}

}  // namespace

ImageDataset draw_digits(const DigitsOptions& options) {
  return ImageDataset({.name = "digits",
                       .image_shape = {.channels = 1, .height = side, .width = side},
                       .classes = classes,
                       .training = draw_set(options, "training digits", options.training_size),
                       .test = draw_set(options, "test digits", options.test_size)});
}

}  // namespace sim
