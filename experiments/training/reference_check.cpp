#include "experiments/training/reference_check.h"

#include <fmt/format.h>

#include <cmath>

#include "experiments/frame/confidence.h"

namespace experiments {
namespace {

bool has_learnt_nothing(const SeedGroup& fp32, const TrainingSetup& setup) {
  const double loss = fp32.estimate("final_loss").mean;
  if (const auto* text = dynamic_cast<const sim::TextDataset*>(&setup.dataset()))
    return loss >= text->unigram_entropy();
  const auto* images = dynamic_cast<const sim::ImageDataset*>(&setup.dataset());
  if (images == nullptr) return false;
  if (!setup.model().is_classifier()) return loss >= variance_of_pixels(*images);
  return fp32.estimate("final_accuracy").mean <= guessing_bound(1.0 / images->classes(), images->test_size());
}

}  // namespace

std::string reason_not_to_compare(const SeedGroup& fp32, const TrainingSetup& setup) {
  if (!std::isfinite(fp32.estimate("final_loss").mean)) return "FP32 ends without a finite test loss";
  if (!has_learnt_nothing(fp32, setup)) return {};
  return fmt::format(
      "in {} steps FP32 has learnt nothing that an answer without a look at the input would not give",
      setup.steps());
}

double variance_of_pixels(const sim::ImageDataset& images) {
  const sim::Batch test = images.test_batch(0, images.test_size());
  const std::size_t pixels = images.image_shape().size();
  double squares = 0;
  for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
    double sum = 0, sum_of_squares = 0;
    for (std::size_t i = pixel; i < test.inputs.size(); i += pixels) {
      sum += test.inputs[i];
      sum_of_squares += double{test.inputs[i]} * test.inputs[i];
    }
    squares += sum_of_squares - sum * sum / static_cast<double>(test.size);
  }
  return squares / static_cast<double>(test.inputs.size());
}

}  // namespace experiments
