#include "sim/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>

#include "sim/tensor/random.h"

namespace sim {
namespace {

template <class Needed>
const Needed& require(const Dataset& dataset, std::string_view model, DataKind kind) {
  if (const auto* needed = dynamic_cast<const Needed*>(&dataset)) return *needed;
  throw std::invalid_argument(fmt::format("model {} needs {}; data '{}' holds {}", model, name_of(kind),
                                          dataset.name(), name_of(dataset.kind())));
}

}  // namespace

std::string_view name_of(DataKind kind) {
  constexpr std::array<std::string_view, 3> names{"images", "text", "scenes"};
  return names[static_cast<std::size_t>(kind)];
}

std::vector<std::uint32_t> Dataset::epoch_order(std::uint64_t seed, std::uint64_t epoch) const {
  const RandomStream stream(seed, fmt::format("training order of epoch {}", epoch));
  return permutation(stream, static_cast<std::uint32_t>(training_size()));
}

Batch Dataset::training_batch(std::span<const std::uint32_t> indices) const {
  const auto beyond = std::ranges::find_if(indices, [&](auto index) { return index >= training_size(); });
  if (beyond != indices.end()) {
    throw std::invalid_argument(fmt::format("data '{}': training example {} asked for, allowed are 0 .. {}",
                                            name(), *beyond, training_size() - 1));
  }
  return make_batch(Part::training, indices);
}

Batch Dataset::test_batch(std::size_t first, std::size_t count) const {
  if (first > test_size() || count > test_size() - first) {
    throw std::invalid_argument(fmt::format("data '{}': {} test examples from {} on asked for, there are {}",
                                            name(), count, first, test_size()));
  }
  std::vector<std::uint32_t> indices(count);
  std::iota(indices.begin(), indices.end(), static_cast<std::uint32_t>(first));
  return make_batch(Part::test, indices);
}

const ImageDataset& require_images(const Dataset& dataset, std::string_view model) {
  return require<ImageDataset>(dataset, model, DataKind::images);
}

const TextDataset& require_text(const Dataset& dataset, std::string_view model) {
  return require<TextDataset>(dataset, model, DataKind::text);
}

const SceneDataset& require_scenes(const Dataset& dataset, std::string_view model) {
  return require<SceneDataset>(dataset, model, DataKind::scenes);
}

Batch BatchSampler::batch(std::uint64_t step, Shard shard) {
  std::vector<std::uint32_t> indices;
  const std::uint64_t size = dataset_->epoch_size();
  const std::size_t count = batch_size_ / shard.count;
  for (std::uint64_t position = step * batch_size_ + shard.index * count; indices.size() < count;
       ++position) {
    if (order_.empty() || position / size != epoch_) {
      epoch_ = position / size;
      order_ = dataset_->epoch_order(seed_, epoch_);
    }
    indices.push_back(order_[position % size]);
  }
  return dataset_->training_batch(indices);
}

}  // namespace sim
