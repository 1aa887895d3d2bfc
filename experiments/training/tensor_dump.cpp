#include "experiments/training/tensor_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "experiments/frame/tensor_files/safetensors.h"
#include "sim/tensor/tensor_contents.h"

namespace experiments {
namespace {

namespace fs = std::filesystem;
namespace files = tensor_files;

/// Tensors on their way into a file, with the bytes that they refer to.
class Dump {
 public:
  template <class Number>
  void add(std::string name, std::string_view dtype, files::Shape shape, std::span<const Number> numbers) {
    const auto bytes = std::as_bytes(numbers);
    bytes_.emplace_back(bytes.begin(), bytes.end());
    tensors_.push_back({.name = std::move(name),
                        .type = files::type_of_safetensors(dtype),
                        .shape = std::move(shape),
                        .data = bytes_.back()});
  }

  /// Rounded once to binary32, but for what comes from binary64.
  void add(std::string name, files::Shape shape, bool in_binary64, const std::vector<double>& values) {
    if (in_binary64) return add<double>(std::move(name), "F64", std::move(shape), values);
    const std::vector<float> floats(values.begin(), values.end());
    add<float>(std::move(name), "F32", std::move(shape), floats);
  }

  void add(const sim::Batch& batch) {
    const auto add_rows = [&]<class Number>(const char* name, const char* dtype,
                                            const std::vector<Number>& numbers) {
      if (numbers.empty()) return;
      files::Shape shape{batch.size};
      if (numbers.size() != batch.size) shape.push_back(numbers.size() / batch.size);
      add<Number>(name, dtype, std::move(shape), numbers);
    };
    add_rows("batch/inputs", "F32", batch.inputs);
    add_rows("batch/tokens", "I32", batch.tokens);
    add_rows("batch/labels", "I32", batch.labels);
    std::vector<float> boxes;
    for (std::size_t image = 0; image < batch.boxes.size(); ++image) {
      for (const sim::Box& box : batch.boxes[image])
        boxes.insert(boxes.end(), {static_cast<float>(image), static_cast<float>(box.label), box.x_min,
                                   box.y_min, box.x_max, box.y_max});
    }
    if (!boxes.empty()) add<float>("batch/boxes", "F32", {boxes.size() / 6, 6}, boxes);
  }

  void write(const fs::path& file, const std::vector<std::pair<std::string, std::string>>& metadata) const {
    fs::create_directories(file.parent_path());
    files::write_safetensors(file, tensors_, metadata);
  }

 private:
  std::deque<std::vector<std::byte>> bytes_;
  std::vector<files::TensorToWrite> tensors_;
};

files::Shape shape_of(const sim::Tensor& tensor) {
  return {tensor.shape().begin(), tensor.shape().end()};
}

/// What is to be known of a step once its last decision has been made.
struct StepTensors {
  /// A gradient with S divided out, of the decisions so far.
  struct Gradient {
    std::string name;
    files::Shape shape;
    bool in_binary64;
    std::vector<double> values;
  };

  Dump weights;
  std::string policy;
  std::vector<Gradient> gradients;

  explicit StepTensors(const sim::ObservedDecision& first) : policy(first.tape.policy().name) {
    for (std::size_t i = 0; i < first.state.weights.size(); ++i) {
      const sim::Tensor& weight = first.state.weights[i];
      weights.add("weights/" + first.state.specs[i].name, shape_of(weight), weight.format() == fp16::binary64,
                  sim::values_of<double>(weight));
    }
    for (std::size_t i = 0; i < first.gradients.sites.size(); ++i) {
      const sim::Tensor& gradient = first.gradients.values.gradients[i];
      gradients.push_back({.name = "gradients/" + first.gradients.sites[i].name,
                           .shape = shape_of(gradient),
                           .in_binary64 = gradient.format() == fp16::binary64,
                           .values = unscaled(first.gradients, i)});
    }
  }

  /// Parameters alone have gradients that add up over micro-batches.
  void add(const sim::ScaledGradients& next) {
    for (std::size_t i = 0; i < next.sites.size(); ++i) {
      if (!sim::is_weight(next.sites[i])) continue;
      std::ranges::transform(gradients[i].values, unscaled(next, i), gradients[i].values.begin(),
                             std::plus<>());
    }
  }

 private:
  static std::vector<double> unscaled(const sim::ScaledGradients& scaled, std::size_t site) {
    std::vector<double> values = sim::values_of<double>(scaled.values.gradients[site]);
    for (double& value : values) value /= scaled.values.scales[site];
    return values;
  }
};

/// The examples of both, in order.
sim::Batch joined(sim::Batch batch, const sim::Batch& next) {
  const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  batch.size += next.size;
  append(batch.inputs, next.inputs);
  append(batch.tokens, next.tokens);
  append(batch.labels, next.labels);
  append(batch.boxes, next.boxes);
  return batch;
}

class TensorDump final : public sim::StepObserver {
 public:
  TensorDump(fs::path folder, std::vector<std::uint64_t> steps, sim::BatchSampler micro_batches,
             std::size_t accumulation_steps)
      : folder_(std::move(folder)),
        steps_(std::move(steps)),
        micro_batches_(std::move(micro_batches)),
        accumulation_steps_(accumulation_steps) {}

  sim::BackwardNeeds needs(std::size_t) const override { return {}; }

  void after_decision(const sim::ObservedDecision& decision, sim::StepRecord& step) override {
    if (!std::ranges::binary_search(steps_, step.step)) return;
    if (tensors_) {
      tensors_->add(decision.gradients);
    } else {
      tensors_.emplace(decision);
    }
  }

  void after_last_decision(sim::StepRecord& step) override {
    if (!tensors_) return;
    Dump dump = std::move(tensors_->weights);
    for (const StepTensors::Gradient& gradient : tensors_->gradients)
      dump.add(gradient.name, gradient.shape, gradient.in_binary64, gradient.values);
    dump.add(batch_of(step.step));
    dump.write(folder_ / fmt::format("step_{}.safetensors", step.step),
               {{"step", fmt::format("{}", step.step)},
                {"loss_scale", fmt::format("{}", step.scale)},
                {"policy", tensors_->policy},
                {"decision", std::string(sim::name_of(step.decision))}});
    tensors_.reset();
  }

 private:
  sim::Batch batch_of(std::uint64_t step) {
    const std::uint64_t first = step * accumulation_steps_;
    sim::Batch batch = micro_batches_.batch(first);
    for (std::uint64_t i = 1; i < accumulation_steps_; ++i)
      batch = joined(std::move(batch), micro_batches_.batch(first + i));
    return batch;
  }

  fs::path folder_;
  std::vector<std::uint64_t> steps_;
  sim::BatchSampler micro_batches_;
  std::size_t accumulation_steps_;
  std::optional<StepTensors> tensors_;  ///< of the step that is being made, where it is one of `steps_`
};

}  // namespace

std::vector<std::uint64_t> dumped_steps(const std::string& option) {
  std::vector<std::uint64_t> steps;
  for (const auto part : std::views::split(option, ',')) {
    const std::string_view text(part.begin(), part.end());
    std::uint64_t step = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
    if (error != std::errc{} || end != text.data() + text.size())
      throw std::invalid_argument(fmt::format(
          "--dump-tensors: '{}' is given; must be numbers of steps from 0, such as 0,10,100", option));
    steps.push_back(step);
  }
  std::ranges::sort(steps);
  return steps;
}

std::unique_ptr<sim::StepObserver> make_tensor_dump(fs::path folder, std::vector<std::uint64_t> steps,
                                                    sim::BatchSampler micro_batches,
                                                    std::size_t accumulation_steps) {
  return std::make_unique<TensorDump>(std::move(folder), std::move(steps), std::move(micro_batches),
                                      accumulation_steps);
}

}  // namespace experiments
