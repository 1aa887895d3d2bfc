#pragma once
/// Data to train on and to test with, of three kinds, and the batches drawn from them.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/tensor/shard.h"

namespace sim {

enum class DataKind { images, text, scenes };

/// "images", "text" or "scenes".
std::string_view name_of(DataKind kind);

struct ImageShape {
  int channels = 1;
  int height = 0;
  int width = 0;

  std::size_t size() const { return static_cast<std::size_t>(channels) * height * width; }
  bool operator==(const ImageShape&) const = default;
};

/// The extent of an object of class `label` in units of the image's width and height: 0 is the left or upper
/// edge of the image, 1 the right or lower one.
struct Box {
  float x_min = 0;
  float y_min = 0;
  float x_max = 0;
  float y_max = 0;
  std::int32_t label = 0;

  bool operator==(const Box&) const = default;
};

/// `size` examples; what does not belong to the data's kind is empty.
struct Batch {
  std::size_t size = 0;
  std::vector<float> inputs{};            ///< images and scenes: pixels in [0, 1], row-major size x features
  std::vector<std::int32_t> tokens{};     ///< text: row-major size x context
  std::vector<std::int32_t> labels{};     ///< images: one each; text: of every token the one that follows it
  std::vector<std::vector<Box>> boxes{};  ///< scenes: the objects of each image
};

/// A training set and a test set of examples.
class Dataset {
 public:
  virtual ~Dataset() = default;

  std::string_view name() const { return name_; }
  virtual DataKind kind() const = 0;

  /// How many different training examples there are.
  virtual std::size_t training_size() const = 0;
  virtual std::size_t test_size() const = 0;

  /// How many training examples an epoch visits; all of them unless a class says otherwise.
  virtual std::size_t epoch_size() const { return training_size(); }

  /// The training examples that epoch `epoch` (from 0) visits, in its order; each epoch has its own, keyed by
  /// the seed.
  virtual std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t epoch) const;

  /// The training examples of these indices, in this order.
  /// Throws std::invalid_argument when an index is not below training_size().
  Batch training_batch(std::span<const std::uint32_t> indices) const;

  /// Test examples first .. first + count - 1, in stored order.
  /// Throws std::invalid_argument when they are not all in the test set.
  Batch test_batch(std::size_t first, std::size_t count) const;

 protected:
  enum class Part { training, test };

  explicit Dataset(std::string name) : name_(std::move(name)) {}
  Dataset(const Dataset&) = default;
  Dataset(Dataset&&) = default;
  Dataset& operator=(const Dataset&) = default;
  Dataset& operator=(Dataset&&) = default;

 private:
  /// The indices are in the part.
  virtual Batch make_batch(Part part, std::span<const std::uint32_t> indices) const = 0;

  std::string name_;
};

/// Images one after the other, each channel by channel, row by row; 0 is background, 255 full ink.
struct LabelledImages {
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;
};

/// Images of one class each.
class ImageDataset final : public Dataset {
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
  explicit ImageDataset(Contents contents);

  DataKind kind() const override { return DataKind::images; }
  std::size_t training_size() const override { return training_.labels.size(); }
  std::size_t test_size() const override { return test_.labels.size(); }

  ImageShape image_shape() const { return image_shape_; }
  /// Labels are 0 .. classes() - 1.
  int classes() const { return classes_; }

 private:
  Batch make_batch(Part part, std::span<const std::uint32_t> indices) const override;

  ImageShape image_shape_;
  int classes_;
  LabelledImages training_;
  LabelledImages test_;
};

/// A text of bytes, cut into windows of `context` tokens, each of which is to be told the next one. The last
/// tenth of the text is the test part; no window reaches from one part into the other.
///
/// A training example is any window of the training part. An epoch takes every `context`-th, from a start of
/// its own, in a random order, so that it predicts nearly every byte once. The test examples are the test
/// part's windows from its start on, each beginning where the one before ended.
class TextDataset final : public Dataset {
 public:
  struct Contents {
    std::string name;
    std::string text;
    std::size_t context = 0;               ///< tokens a window
    std::optional<double> entropy_rate{};  ///< of the text's source, if known, in nats per byte
  };

  /// The shortest text that is accepted, in bytes, for windows of `context` tokens: ten windows, each with
  /// the token that follows.
  static constexpr std::size_t shortest_text(std::size_t context) { return 10 * (context + 1); }
  static constexpr std::size_t longest_text = std::size_t{1} << 28;

  /// Throws std::invalid_argument when the context is 0 or the text not of shortest_text(context) ..
  /// longest_text bytes.
  explicit TextDataset(Contents contents);

  DataKind kind() const override { return DataKind::text; }
  std::size_t training_size() const override { return training_length_ - context_; }
  std::size_t test_size() const override { return (tokens_.size() - training_length_ - 1) / context_; }
  std::size_t epoch_size() const override { return training_size() / context_; }
  std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t epoch) const override;

  /// The bytes that occur, as unsigned numbers in ascending order; a token is an index into them.
  std::string_view vocabulary() const { return vocabulary_; }
  /// Tokens a window.
  std::size_t context() const { return context_; }

  /// The least mean cross entropy over the labels of the test examples, in nats, that a prediction which
  /// ignores the context can reach: the entropy of their frequencies.
  double unigram_entropy() const;

  /// The entropy rate of the text's source, if known: the expected cross entropy, in nats per token, of the
  /// best possible prediction from everything before. No model expects less.
  std::optional<double> entropy_rate() const { return entropy_rate_; }

 private:
  Batch make_batch(Part part, std::span<const std::uint32_t> indices) const override;

  std::size_t context_;
  std::optional<double> entropy_rate_;
  std::string vocabulary_;
  std::vector<std::uint8_t> tokens_;
  std::size_t training_length_;
};

/// Images one after the other, each channel by channel, row by row, and the objects in each.
struct Scenes {
  std::vector<std::uint8_t> pixels;
  std::vector<std::vector<Box>> boxes;
};

/// Images with the boxes and classes of the objects in them.
class SceneDataset final : public Dataset {
 public:
  struct Contents {
    std::string name;
    ImageShape image_shape;
    int classes = 0;
    Scenes training;
    Scenes test;
  };

  /// Throws std::invalid_argument when a set is empty, when it has not image_shape.size() pixels for each
  /// image, or, naming image and box, when a label is not below `classes` or a coordinate is NaN, outside
  /// 0 .. 1 or not below its opposite.
  explicit SceneDataset(Contents contents);

  DataKind kind() const override { return DataKind::scenes; }
  std::size_t training_size() const override { return training_.boxes.size(); }
  std::size_t test_size() const override { return test_.boxes.size(); }

  ImageShape image_shape() const { return image_shape_; }
  /// Labels are 0 .. classes() - 1; background is not among them.
  int classes() const { return classes_; }

 private:
  Batch make_batch(Part part, std::span<const std::uint32_t> indices) const override;

  ImageShape image_shape_;
  int classes_;
  Scenes training_;
  Scenes test_;
};

/// The data as the kind that `model` needs, else std::invalid_argument such as "model transformer needs text;
/// data 'digits' holds images".
const ImageDataset& require_images(const Dataset& dataset, std::string_view model);
const TextDataset& require_text(const Dataset& dataset, std::string_view model);
const SceneDataset& require_scenes(const Dataset& dataset, std::string_view model);

/// Batches of an endless pass over the training set, epoch after epoch. A batch may straddle epochs. Which
/// examples batch number `step` holds depends on seed, step and size alone, not on earlier calls.
class BatchSampler {
 public:
  /// The dataset must outlive the sampler.
  BatchSampler(const Dataset& dataset, std::uint64_t seed, std::size_t batch_size)
      : dataset_(&dataset), seed_(seed), batch_size_(batch_size) {}

  Batch batch(std::uint64_t step) { return batch(step, {}); }
  /// One of the shards of that batch, whose size is a multiple of their number.
  Batch batch(std::uint64_t step, Shard shard);

 private:
  const Dataset* dataset_;
  std::uint64_t seed_;
  std::size_t batch_size_;
  std::uint64_t epoch_ = 0;
  std::vector<std::uint32_t> order_;  ///< of epoch_; empty before the first batch
};

}  // namespace sim
