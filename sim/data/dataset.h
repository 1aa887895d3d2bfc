#pragma once
/// Labelled images, split into a training and a test set, and the batches drawn from them.

#include <cstddef>
#include <cstdint>
#include <span>
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

  /// In which order epoch `epoch` (from 0) visits the training images; each has its own, keyed by the seed.
  std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t epoch) const;

  /// The training images of these indices, in this order.
  Batch training_images(std::span<const std::uint32_t> indices) const;

  /// Test images first .. first + count - 1, in stored order.
  /// Throws std::invalid_argument when they are not all in the test set.
  Batch test_batch(std::size_t first, std::size_t count) const;

 private:
  Contents contents_;
};

/// Batches of an endless pass over the training set, which visits every image once per epoch. A batch may
/// straddle epochs. Which images batch number `step` holds depends on seed, step and size alone, not on
/// earlier calls.
class BatchSampler {
 public:
  /// The dataset must outlive the sampler.
  BatchSampler(const Dataset& dataset, std::uint64_t seed, std::size_t batch_size)
      : dataset_(&dataset), seed_(seed), batch_size_(batch_size) {}

  Batch batch(std::uint64_t step);

 private:
  const Dataset* dataset_;
  std::uint64_t seed_;
  std::size_t batch_size_;
  std::uint64_t epoch_ = 0;
  std::vector<std::uint32_t> order_;  ///< of epoch_; empty before the first batch
};

}  // namespace sim
