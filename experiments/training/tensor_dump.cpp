#include "experiments/training/tensor_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <deque>
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

  /// The values divided by `scale`, each rounded once.
  void add(std::string name, const sim::Tensor& tensor, double scale = 1) {
    files::Shape shape(tensor.shape().begin(), tensor.shape().end());
    std::vector<double> values = sim::values_of<double>(tensor);
    for (double& value : values) value /= scale;
    if (tensor.format() == fp16::binary64)
      return add<double>(std::move(name), "F64", std::move(shape), values);
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

class TensorDump final : public sim::StepObserver {
 public:
  TensorDump(fs::path folder, std::vector<std::uint64_t> steps)
      : folder_(std::move(folder)), steps_(std::move(steps)) {}

  sim::BackwardNeeds needs(std::size_t) const override { return {}; }

  void after_decision(const sim::ObservedDecision& decision, sim::StepRecord& step) override {
    if (!std::ranges::binary_search(steps_, step.step)) return;
    Dump dump;
    for (std::size_t i = 0; i < decision.state.weights.size(); ++i)
      dump.add("weights/" + decision.state.specs[i].name, decision.state.weights[i]);
    const sim::ScaledGradients& scaled = decision.gradients;
    for (std::size_t i = 0; i < scaled.sites.size(); ++i)
      dump.add("gradients/" + scaled.sites[i].name, scaled.values.gradients[i], scaled.values.scales[i]);
    dump.add(decision.batch);
    dump.write(folder_ / fmt::format("step_{}.safetensors", step.step),
               {{"step", fmt::format("{}", step.step)},
                {"loss_scale", fmt::format("{}", decision.loss_scale)},
                {"policy", std::string(decision.tape.policy().name)},
                {"decision", std::string(sim::name_of(step.decision))}});
  }

 private:
  fs::path folder_;
  std::vector<std::uint64_t> steps_;
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

std::unique_ptr<sim::StepObserver> make_tensor_dump(fs::path folder, std::vector<std::uint64_t> steps) {
  return std::make_unique<TensorDump>(std::move(folder), std::move(steps));
}

}  // namespace experiments
