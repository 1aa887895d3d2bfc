#include "tools/halflab/hist/blocks.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "experiments/frame/tensor_files/element_reader.h"
#include "tools/halflab/quantize/quantized.h"

namespace halflab::hist {
namespace {

namespace files = experiments::tensor_files;

constexpr std::size_t most_worst = 5;

/// Finds the blocks that lose most, from values and what their codes stand for.
class WorstBlockFinder {
 public:
  WorstBlockFinder(const files::StoredTensor& tensor, const fp16::BlockFormat& format,
                   std::vector<WorstBlock>& worst)
      : tensor_(tensor),
        line_(tensor.shape.empty() ? 1 : std::max<std::uint64_t>(tensor.shape.back(), 1)),
        size_(static_cast<std::uint64_t>(format.block_size)),
        worst_(worst) {}

  void add(std::span<const double> values, std::span<const double> decoded) {
    for (std::size_t i = 0; i < values.size(); ++i, ++next_) {
      if (next_ % line_ % size_ == 0) {
        end_block();
        first_ = next_;
      }
      add(values[i], decoded[i]);
    }
  }

  /// After the last value.
  void finish() { end_block(); }

 private:
  void add(double value, double decoded) {
    if (!std::isfinite(value) || !std::isfinite(decoded)) return;
    squares_.add(value);
    error_squares_.add(decoded - value);
    largest_ = std::max(largest_, std::fabs(value));
  }

  void end_block() {
    if (!squares_.is_zero())
      keep({tensor_.name, files::index_text_of(tensor_.shape, first_),
            error_squares_.norm() / squares_.norm(), largest_});
    squares_ = error_squares_ = {};
    largest_ = 0;
  }

  void keep(WorstBlock block) {
    if (worst_.size() == most_worst && block.relative_error <= worst_.back().relative_error) return;
    worst_.push_back(std::move(block));
    std::ranges::stable_sort(worst_, std::greater(), &WorstBlock::relative_error);
    if (worst_.size() > most_worst) worst_.pop_back();
  }

  const files::StoredTensor& tensor_;
  std::uint64_t line_, size_;
  std::vector<WorstBlock>& worst_;
  std::uint64_t next_ = 0, first_ = 0;
  SquareSum squares_, error_squares_;
  double largest_ = 0;
};

BlockedTensor measure_tensor(const files::StoredTensor& tensor, const quantize::Recipe& recipe, int threads,
                             std::vector<WorstBlock>& worst) {
  WorstBlockFinder finder(tensor, *recipe.block, worst);
  auto [found, quantized] = quantize::measure_tensor(
      tensor, recipe, threads,
      [&](std::span<const double> values, std::span<const double> decoded) { finder.add(values, decoded); });
  finder.finish();
  BlockedTensor blocked{.found = std::move(found), .blocks = quantized.scales.size()};
  for (const std::uint8_t scale : quantized.scales) ++blocked.scales[scale];
  return blocked;
}

}  // namespace

BlockedTensor& BlockedTensor::operator+=(const BlockedTensor& other) {
  found += other.found;
  blocks += other.blocks;
  for (std::size_t code = 0; code < scales.size(); ++code) scales[code] += other.scales[code];
  return *this;
}

BlockFindings measure_blocks(const files::TensorSet& set, const fp16::BlockFormat& format,
                             experiments::Run& run) {
  quantize::Options options;
  options.format = std::string(format.name);
  BlockFindings found{.recipe = quantize::recipe_of(options),
                      .tensors = {},
                      .total = {.found = {.name = "all tensors"}},
                      .worst = {}};
  experiments::Progress progress = run.progress("blocks", set.tensors().size());
  for (const files::StoredTensor& tensor : set.tensors()) {
    found.tensors.push_back(measure_tensor(tensor, found.recipe, run.threads(), found.worst));
    found.total += found.tensors.back();
    progress.tick();
  }
  return found;
}

}  // namespace halflab::hist
