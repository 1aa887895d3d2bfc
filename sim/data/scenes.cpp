#include "sim/data/scenes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "fp16/vector/threads.h"
#include "sim/data/random_sequence.h"
#include "sim/tensor/random.h"

namespace sim {
namespace {

constexpr int side = 64;
constexpr int channels = 3;
constexpr std::size_t values_per_image = std::size_t{channels} * side * side;
/// Far more than an image takes, in spite of what is drawn again.
constexpr std::uint64_t draws_per_image = 1 << 20;

enum class Figure : std::int32_t { square, disc, triangle };
constexpr int figures = 3;

using Colour = std::array<float, channels>;
using Canvas = std::array<float, values_per_image>;  ///< channel by channel, row by row

/// Pixels; the centre of the first one is at (0.5, 0.5).
struct Shape {
  Figure figure;
  float left, top, size;
  Colour colour;

  bool covers(float x, float y) const {
    const float u = (x - left) / size - 0.5f;
    const float v = (y - top) / size - 0.5f;
    if (std::max(std::fabs(u), std::fabs(v)) > 0.5f) return false;
    switch (figure) {
      case Figure::square:
        return true;
      case Figure::disc:
        return u * u + v * v <= 0.25f;
      case Figure::triangle:
        return 2.0f * std::fabs(u) <= v + 0.5f;
    }
    return false;
  }

  /// The share of the pixel of that column and row that is covered, by a grid of 4 x 4 points.
  float coverage(int column, int row) const {
    int covered = 0;
    for (int point = 0; point < 16; ++point) {
      covered += covers(static_cast<float>(column) + 0.125f + 0.25f * static_cast<float>(point % 4),
                        static_cast<float>(row) + 0.125f + 0.25f * static_cast<float>(point / 4));
    }
    return static_cast<float>(covered) / 16.0f;
  }

  Box box() const {
    return {.x_min = left / side,
            .y_min = top / side,
            .x_max = (left + size) / side,
            .y_max = (top + size) / side,
            .label = static_cast<std::int32_t>(figure)};
  }
};

class Background {
 public:
  explicit Background(RandomSequence& random) {
    for (float& value : middle_) value = random.uniform(0.25f, 0.75f);
    for (float& value : to_right_) value = random.uniform(-0.3f, 0.3f);
    for (float& value : downwards_) value = random.uniform(-0.3f, 0.3f);
  }

  float at(std::size_t channel, float x, float y) const {
    return middle_[channel] + to_right_[channel] * (x / side - 0.5f) +
           downwards_[channel] * (y / side - 0.5f);
  }

 private:
  Colour middle_, to_right_, downwards_;
};

/// The area that two shapes' boxes share, over that of the smaller box.
float overlap(const Shape& a, const Shape& b) {
  const auto shared = [&](float low_a, float low_b) {
    return std::max(0.0f, std::min(low_a + a.size, low_b + b.size) - std::max(low_a, low_b));
  };
  const float smaller = std::min(a.size, b.size);
  return shared(a.left, b.left) * shared(a.top, b.top) / (smaller * smaller);
}

bool stands_out(const Shape& shape, const Background& background) {
  const float centre = 0.5f * shape.size;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const float behind = background.at(channel, shape.left + centre, shape.top + centre);
    if (std::fabs(shape.colour[channel] - behind) >= 0.3f) return true;
  }
  return false;
}

Shape draw_shape(RandomSequence& random) {
  Shape shape{};
  shape.figure = static_cast<Figure>(random.below(figures));
  shape.size = side * random.uniform(0.14f, 0.5f);
  shape.left = random.uniform(0.0f, side - shape.size);
  shape.top = random.uniform(0.0f, side - shape.size);
  for (float& value : shape.colour) value = random.uniform(0.0f, 1.0f);
  return shape;
}

std::vector<Shape> draw_shapes(const Background& background, RandomSequence& random) {
  const std::size_t count = 1 + random.below(3);
  std::vector<Shape> shapes;
  while (shapes.size() < count) {
    const Shape shape = draw_shape(random);
    const bool is_apart =
        std::ranges::all_of(shapes, [&](const Shape& other) { return overlap(shape, other) <= 0.3f; });
    if (is_apart && stands_out(shape, background)) shapes.push_back(shape);
  }
  return shapes;
}

void paint(Canvas& canvas, const Background& background) {
  for (std::size_t i = 0; i < canvas.size(); ++i) {
    const auto x = static_cast<float>(i % side), y = static_cast<float>(i / side % side);
    canvas[i] = background.at(i / (side * side), x + 0.5f, y + 0.5f);
  }
}

void paint(Canvas& canvas, const Shape& shape) {
  const auto end = [&](float start) {
    return std::min(static_cast<int>(std::ceil(start + shape.size)), side);
  };
  for (int row = static_cast<int>(shape.top); row < end(shape.top); ++row) {
    for (int column = static_cast<int>(shape.left); column < end(shape.left); ++column) {
      const float coverage = shape.coverage(column, row);
      for (int channel = 0; channel < channels; ++channel) {
        float& value = canvas[static_cast<std::size_t>((channel * side + row) * side + column)];
        value += coverage * (shape.colour[static_cast<std::size_t>(channel)] - value);
      }
    }
  }
}

void store(const Canvas& canvas, std::span<const std::uint32_t> noise_bits, float noise,
           std::span<std::uint8_t> pixels) {
  for (std::size_t i = 0; i < canvas.size(); ++i) {
    const float value = canvas[i] + noise * RandomStream::normal_from_bits(noise_bits[i]);
    pixels[i] = static_cast<std::uint8_t>(255.0f * std::clamp(value, 0.0f, 1.0f) + 0.5f);
  }
}

Scenes draw_set(const ScenesOptions& options, std::string_view set, std::size_t size) {
  const RandomStream stream(options.seed, fmt::format("{} scenes", set));
  const RandomStream noise(options.seed, fmt::format("noise of the {} scenes", set));
  Scenes scenes{.pixels = std::vector<std::uint8_t>(size * values_per_image),
                .boxes = std::vector<std::vector<Box>>(size)};
  const auto draw = [&](std::size_t begin, std::size_t end) {
    Canvas canvas;
    std::vector<std::uint32_t> noise_bits(values_per_image);
    for (std::size_t image = begin; image < end; ++image) {
      RandomSequence random(stream, image * draws_per_image);
      const Background background(random);
      paint(canvas, background);
      for (const Shape& shape : draw_shapes(background, random)) {
        paint(canvas, shape);
        scenes.boxes[image].push_back(shape.box());
      }
      const std::size_t first = image * values_per_image;
      noise.fill_bits(first, noise_bits);
      store(canvas, noise_bits, options.noise, std::span(scenes.pixels).subspan(first, values_per_image));
    }
  };
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  fp16::detail::for_each_part(size, threads, 1, draw);
  return scenes;
}

}  // namespace

SceneDataset draw_scenes(const ScenesOptions& options) {
  if (!(0.0f <= options.noise && options.noise <= 1.0f))
    throw std::invalid_argument(fmt::format("noise: {} is not allowed; 0 .. 1", options.noise));
  return SceneDataset({.name = "scenes",
                       .image_shape = {.channels = channels, .height = side, .width = side},
                       .classes = figures,
                       .training = draw_set(options, "training", options.training_size),
                       .test = draw_set(options, "test", options.test_size)});
}

}  // namespace sim
