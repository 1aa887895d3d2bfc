#include <algorithm>
#include <array>
#include <ranges>
#include <stdexcept>
#include <string>

#include "fp16/elementary.h"
#include "sim/models/anchors.h"
#include "sim/models/registry.h"
#include "sim/ops/add.h"
#include "sim/ops/channels_last.h"
#include "sim/ops/conv2d.h"
#include "sim/ops/max_pool2d.h"
#include "sim/ops/relu.h"
#include "sim/ops/smooth_l1.h"
#include "sim/ops/softmax_cross_entropy.h"

namespace sim {
namespace {

/// Ten 3x3 convolutions with ReLU in pairs, a 2x2 max pool between the pairs; class and box heads on the
/// fourth pair (an eighth of the side) and on the fifth (a sixteenth). Pixels come as (pixel - 1/2) * 256,
/// the mean-subtracted byte units of networks of that time, and a fixed gain of 1/64 stands before the heads:
/// large activations are what makes the gradients of a ReLU network small. Under unit scaling there are no
/// such gains.
///
/// Losses: cross entropy of the classes over matched anchors and three hard negatives for each, and smooth L1
/// of the offsets of matched anchors, over the normaliser; in evaluation always over the matched anchors.
class Ssd final : public Model {
 public:
  Ssd(const SceneDataset& scenes, const SsdOptions& options)
      : options_(options),
        channels_(static_cast<std::size_t>(scenes.image_shape().channels)),
        side_(static_cast<std::size_t>(scenes.image_shape().height)),
        classes_(static_cast<std::size_t>(scenes.classes()) + 1) {
    if (scenes.image_shape().width != scenes.image_shape().height || side_ % 16 != 0) {
      throw std::invalid_argument("model ssd: images of " + std::to_string(scenes.image_shape().height) +
                                  "x" + std::to_string(scenes.image_shape().width) +
                                  " do not suit it; allowed: squares with a side divisible by 16");
    }
    maps_[0] = {.name = "head1", .anchors = anchors_of_map(side_ / 8, per_cell(), 0.2f, 0.4f)};
    maps_[1] = {.name = "head2", .anchors = anchors_of_map(side_ / 16, per_cell(), 0.4f, 0.6f)};
  }

  std::vector<ParameterSpec> parameters() const override {
    constexpr auto head = Initialisation::normal(0.02f);
    ParameterList list;
    std::size_t in = channels_;
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      const std::size_t out = width_of(pair);
      list.add_layer(convolution(2 * pair), {out, in, 3, 3}, WeightInitialisation::he_normal);
      list.add_layer(convolution(2 * pair + 1), {out, out, 3, 3}, WeightInitialisation::he_normal);
      in = out;
    }
    for (std::size_t map = 0; map < maps_.size(); ++map) {
      const std::size_t tapped = width_of(3 + map);
      list.add_layer(maps_[map].class_head(), {per_cell() * classes_, tapped, 3, 3}, head);
      list.add_layer(maps_[map].box_head(), {per_cell() * 4, tapped, 3, 3}, head);
    }
    return std::move(list).specs();
  }

  bool is_classifier() const override { return true; }
  std::size_t num_losses() const override { return 2; }

  ForwardPass forward(ForwardContext& context) const override {
    std::array<Variable, 2> classes, boxes;
    Variable x = context.gain(centred_inputs(context), 256, 1);
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      if (pair > 0) x = context.apply(max_pool2d, {x});
      for (const std::size_t layer : {2 * pair, 2 * pair + 1})
        x = context.apply(relu, {context.conv2d(convolution(layer), x, {.padding = 1})});
      if (pair < 3) continue;
      const Map& map = maps_[pair - 3];
      const Variable tap = context.gain(x, tap_gain, tap_gain);
      const auto rows = [&](const std::string& head, std::size_t length) {
        return context.apply(channels_last, {context.conv2d(head, tap, {.padding = 1})},
                             ChannelsLastOptions{.row_length = length});
      };
      classes[pair - 3] = rows(map.class_head(), classes_);
      boxes[pair - 3] = rows(map.box_head(), 4);
    }
    const std::array<Variable, 2> losses = classification_and_localisation(context, classes, boxes);
    return {.loss = context.apply(add, {losses[0], losses[1]}),
            .outputs = {classes[0], classes[1]},
            .losses = {losses[0], losses[1]}};
  }

  /// Over matched anchors: whether the largest logit is that of the object.
  Score score(const Tape& tape, const ForwardPass& pass, const Batch& batch) const override {
    const Targets targets = match(batch);
    Score total;
    for (std::size_t map = 0; map < maps_.size(); ++map) {
      std::vector<std::int32_t> labels = targets[map].labels;
      std::ranges::replace(labels, 0, -1);
      const Score score = score_rows(tape.value(pass.outputs[map]), labels);
      total.correct += score.correct;
      total.predictions += score.predictions;
    }
    return total;
  }

 private:
  static constexpr std::size_t pairs = 5;
  static constexpr double tap_gain = 1.0 / 64;

  struct Map {
    std::string name;
    std::vector<Anchor> anchors;

    std::string class_head() const { return name + ".class"; }
    std::string box_head() const { return name + ".box"; }
  };
  /// For each map the anchors of all images, image by image.
  using Targets = std::array<AnchorTargets, 2>;

  std::size_t per_cell() const { return static_cast<std::size_t>(options_.anchors); }
  std::size_t width_of(std::size_t pair) const {
    return static_cast<std::size_t>(options_.channels) << std::min<std::size_t>(pair, 2);
  }
  static std::string convolution(std::size_t index) { return "conv" + std::to_string(index + 1); }

  Variable centred_inputs(ForwardContext& context) const {
    Tensor centred({context.batch().size, channels_, side_, side_}, fp16::binary32);
    std::ranges::transform(context.batch().inputs, centred.elements<float>().begin(),
                           [](float pixel) { return pixel - 0.5f; });
    return context.constant(std::move(centred));
  }

  /// An object may be answered for by anchors of both maps.
  Targets match(const Batch& batch) const {
    std::vector<Anchor> all = maps_[0].anchors;
    all.insert(all.end(), maps_[1].anchors.begin(), maps_[1].anchors.end());
    Targets targets;
    for (const std::vector<Box>& objects : batch.boxes) {
      const AnchorTargets matched = match_anchors(all, objects);
      std::size_t first = 0;
      for (std::size_t map = 0; map < maps_.size(); ++map) {
        const auto from = static_cast<std::ptrdiff_t>(first);
        const auto to = static_cast<std::ptrdiff_t>(first += maps_[map].anchors.size());
        AnchorTargets& t = targets[map];
        t.labels.insert(t.labels.end(), matched.labels.begin() + from, matched.labels.begin() + to);
        t.offsets.insert(t.offsets.end(), matched.offsets.begin() + from, matched.offsets.begin() + to);
      }
    }
    return targets;
  }

  /// log(sum of exp) - logit of the background, for each anchor.
  std::vector<float> background_losses(const Tensor& logits) const {
    std::vector<float> losses(logits.size() / classes_);
    std::vector<double> buffer(classes_);
    for (std::size_t anchor = 0; anchor < losses.size(); ++anchor) {
      const double* z = read(logits, anchor * classes_, classes_, buffer);
      const double largest = *std::max_element(z, z + classes_);
      float sum = 0;
      for (std::size_t c = 0; c < classes_; ++c) sum += fp16::exp(static_cast<float>(z[c] - largest));
      losses[anchor] = fp16::log(sum) + static_cast<float>(largest - z[0]);
    }
    return losses;
  }

  /// Three negatives for each positive of an image, chosen among the anchors of both maps.
  void mine(const Tape& tape, const std::array<Variable, 2>& classes, std::size_t images,
            Targets& targets) const {
    const std::array losses{background_losses(tape.value(classes[0])),
                            background_losses(tape.value(classes[1]))};
    for (std::size_t image = 0; image < images; ++image) {
      std::vector<std::int32_t> labels;
      std::vector<float> of_image;
      for (std::size_t map = 0; map < maps_.size(); ++map) {
        const std::size_t count = maps_[map].anchors.size();
        const auto first = static_cast<std::ptrdiff_t>(image * count),
                   end = first + static_cast<std::ptrdiff_t>(count);
        labels.insert(labels.end(), targets[map].labels.begin() + first, targets[map].labels.begin() + end);
        of_image.insert(of_image.end(), losses[map].begin() + first, losses[map].begin() + end);
      }
      mine_hard_negatives(labels, of_image, 3);
      auto mined = labels.begin();
      for (std::size_t map = 0; map < maps_.size(); ++map) {
        const auto count = static_cast<std::ptrdiff_t>(maps_[map].anchors.size());
        std::copy_n(mined, count, targets[map].labels.begin() + static_cast<std::ptrdiff_t>(image) * count);
        mined += count;
      }
    }
  }

  double normaliser(const Targets& targets, std::size_t images, bool training) const {
    const double anchors = static_cast<double>(images * (maps_[0].anchors.size() + maps_[1].anchors.size()));
    if (training && options_.normaliser == SsdOptions::by_values)
      return anchors * static_cast<double>(classes_ + 4);
    if (training && options_.normaliser == SsdOptions::by_anchors) return anchors;
    double positives = 0;
    for (const AnchorTargets& map : targets)
      positives +=
          static_cast<double>(std::ranges::count_if(map.labels, [](std::int32_t l) { return l > 0; }));
    return std::max(positives, 1.0);
  }

  std::array<Variable, 2> classification_and_localisation(ForwardContext& context,
                                                          const std::array<Variable, 2>& classes,
                                                          const std::array<Variable, 2>& boxes) const {
    Targets targets = match(context.batch());
    const double divisor = normaliser(targets, context.batch().size, context.tape().training());
    mine(context.tape(), classes, context.batch().size, targets);
    std::vector<Variable> class_losses, box_losses;
    for (std::size_t map = 0; map < maps_.size(); ++map) {
      class_losses.push_back(
          context.apply(softmax_cross_entropy, {classes[map]},
                        SoftmaxCrossEntropyOptions{.labels = targets[map].labels, .normaliser = divisor}));
      std::vector<float> matched;
      for (const std::int32_t label : targets[map].labels) matched.push_back(label > 0 ? 1.0f : 0.0f);
      Tensor offsets({matched.size(), 4}, fp16::binary32);
      std::ranges::copy(targets[map].offsets | std::views::join, offsets.elements<float>().begin());
      box_losses.push_back(
          context.apply(smooth_l1, {boxes[map], context.constant(std::move(offsets))},
                        SmoothL1Options{.row_weights = std::move(matched), .normaliser = divisor}));
    }
    return {context.apply(add, class_losses), context.apply(add, box_losses)};
  }

  SsdOptions options_;
  std::size_t channels_, side_, classes_;
  std::array<Map, 2> maps_;
};

}  // namespace

std::unique_ptr<Model> make_ssd(const Dataset& dataset, const SsdOptions& options) {
  return std::make_unique<Ssd>(require_scenes(dataset, "ssd"), options);
}

}  // namespace sim
