#include <fmt/format.h>

#include <array>
#include <span>
#include <stdexcept>
#include <utility>

#include "fp16/elementary.h"
#include "sim/data/dataset.h"
#include "sim/tensor/random.h"

namespace sim {
namespace {

using ByteCounts = std::array<std::size_t, 256>;

ByteCounts count_bytes(std::span<const std::uint8_t> bytes) {
  ByteCounts counts{};
  for (const std::uint8_t byte : bytes) ++counts[byte];
  return counts;
}

}  // namespace

TextDataset::TextDataset(Contents contents)
    : Dataset(std::move(contents.name)),
      context_(contents.context),
      entropy_rate_(contents.entropy_rate),
      tokens_(contents.text.begin(), contents.text.end()),
      training_length_(tokens_.size() - tokens_.size() / 10) {
  if (context_ < 1 || context_ > longest_text) {
    throw std::invalid_argument(fmt::format("data '{}': context {} is not allowed; 1 .. {} tokens are",
                                            name(), context_, longest_text));
  }
  if (tokens_.size() < shortest_text(context_) || tokens_.size() > longest_text) {
    throw std::invalid_argument(fmt::format("data '{}': {} bytes found, {} .. {} needed for a context of {}",
                                            name(), tokens_.size(), shortest_text(context_), longest_text,
                                            context_));
  }
  const ByteCounts counts = count_bytes(tokens_);
  std::array<std::uint8_t, 256> token_of{};
  for (std::size_t byte = 0; byte < counts.size(); ++byte) {
    if (counts[byte] == 0) continue;
    token_of[byte] = static_cast<std::uint8_t>(vocabulary_.size());
    vocabulary_.push_back(static_cast<char>(byte));
  }
  for (std::uint8_t& token : tokens_) token = token_of[token];
}

std::vector<std::uint32_t> TextDataset::epoch_order(std::uint64_t seed, std::uint64_t epoch) const {
  const RandomStream offsets(seed, "offsets of the epochs' windows");
  const auto offset = static_cast<std::uint32_t>(offsets.below(epoch, context_));
  const RandomStream order(seed, fmt::format("training order of epoch {}", epoch));
  std::vector<std::uint32_t> starts = permutation(order, static_cast<std::uint32_t>(epoch_size()));
  for (std::uint32_t& start : starts) start = offset + start * static_cast<std::uint32_t>(context_);
  return starts;
}

double TextDataset::unigram_entropy() const {
  const std::size_t labels = test_size() * context_;
  const ByteCounts counts = count_bytes(std::span(tokens_).subspan(training_length_ + 1, labels));
  double entropy = 0;
  for (const std::size_t count : counts) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / static_cast<double>(labels);
    entropy -= share * static_cast<double>(fp16::log(static_cast<float>(share)));
  }
  return entropy;
}

Batch TextDataset::make_batch(Part part, std::span<const std::uint32_t> indices) const {
  Batch batch{.size = indices.size()};
  batch.tokens.reserve(indices.size() * context_);
  batch.labels.reserve(indices.size() * context_);
  for (const std::size_t index : indices) {
    const std::size_t start = part == Part::training ? index : training_length_ + index * context_;
    const std::span window = std::span(tokens_).subspan(start, context_ + 1);
    batch.tokens.insert(batch.tokens.end(), window.begin(), window.end() - 1);
    batch.labels.insert(batch.labels.end(), window.begin() + 1, window.end());
  }
  return batch;
}

}  // namespace sim
