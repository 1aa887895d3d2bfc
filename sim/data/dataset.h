#pragma once
/// Labelled images, split into a training and a test set, and the batches drawn from them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sim {

struct ImageShape {
  int channels = 1;
  int height = 0;
  int width = 0;

  std::size_t size() const { return static_cast<std::size_t>(channels) * height * width; }
  bool operator==(const ImageShape&) const = default;
};

/// `size` images as a row-major size x features matrix of pixel values in [0, 1], and their labels.
struct Batch {
  std::size_t size = 0;
  std::vector<float> inputs;
  std::vector<std::int32_t> labels;
};

/// Images one after the other, each channel by channel, row by row; 0 is background, 255 full ink.
struct LabelledImages {
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;
};

class Dataset {
 public:
  struct Contents {
    std::string name;
    ImageShape image_shape;
    int classes = 0;
    LabelledImages training;
    LabelledImages test;
  };

  /// Throws std::invalid_argument when a set is empty, when it has not image_shape.size() pixels for each
  /// label, or when a label is not below `classes`.
  explicit Dataset(Contents contents);

  std::string_view name() const { return contents_.name; }
  ImageShape image_shape() const { return contents_.image_shape; }
  /// Labels are 0 .. classes() - 1.
  int classes() const { return contents_.classes; }
  std::size_t training_size() const { return contents_.training.labels.size(); }
  std::size_t test_size() const { return contents_.test.labels.size(); }

  /// Batch number `step` (from 0) of an endless pass over the training set. The pass visits every image once
  /// per epoch, in an order of that epoch's own, keyed by the seed; a batch may straddle epochs. The batch
  /// depends on the arguments alone, not on earlier calls.
  Batch training_batch(std::uint64_t seed, std::uint64_t step, std::size_t batch_size) const;

  /// Test images first .. first + count - 1, in stored order.
  /// Throws std::invalid_argument when they are not all in the test set.
  Batch test_batch(std::size_t first, std::size_t count) const;

 private:
  Contents contents_;
};

}  // namespace sim
