#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "sim/optimizers/registry.h"
#include "sim/tape/gradients.h"
#include "tests/bench/case.h"

namespace bench {
namespace {

using sim::Tensor;

constexpr std::size_t size = std::size_t{1}
                             << 24;  ///< beyond the caches, as the gradients of a large model are

Tensor gradient() {
  static const std::vector<float> values = gradient_like_values(size, "updates");
  return Tensor::from({size}, values);
}

/// A copy of what the rows below read and write.
void add_copy(std::vector<Case>& cases) {
  const auto from = std::make_shared<Tensor>(gradient());
  const auto to = std::make_shared<Tensor>(gradient());
  cases.push_back({"copy_gradients",
                   size,
                   [=] {
                     std::memcpy(to->elements<float>().data(), std::as_const(*from).elements<float>().data(),
                                 from->size_bytes());
                   },
                   {},
                   true});
}

/// AdamW with moments of 8 bits; its first step is AdamW's own.
void add_adamw_8bit(std::vector<Case>& cases) {
  struct Training {
    std::unique_ptr<sim::Optimizer> optimizer = sim::make_optimizer("adamw8bit");
    Tensor weights = Tensor::from({size}, normal_values(size, "weights"));
    Tensor gradients = gradient();

    void step() {
      optimizer->begin_step();
      optimizer->update(0, weights, gradients);
    }
  };
  const auto training = std::make_shared<Training>();
  Training exact{.optimizer = sim::make_optimizer("adamw")};
  training->step();
  exact.step();
  require(std::ranges::equal(training->weights.elements<float>(), exact.weights.elements<float>()),
          "adamw8bit");
  // Weights are read and written, gradients read, and two moments of a byte read and written.
  cases.push_back(Case{"adamw8bit", size, [training] { training->step(); }}.moving(16));
}

/// Each time the norm is to become a little less than it is.
void add_clipping(std::vector<Case>& cases) {
  struct Clipped {
    sim::Gradients gradients;
    double norm;
  };
  const auto clipped = std::make_shared<Clipped>();
  const std::vector<float> values = clipped->gradients.parameters.emplace_back(gradient()).to_floats();
  clipped->norm = std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
  const auto clip = [clipped] {
    clipped->norm *= 0.999;
    return sim::clip(clipped->gradients, {.max_norm = clipped->norm}).norm;
  };
  require(std::fabs(clip().coefficient - 0.999) < 1e-7, "clip");
  // Read for the norm, then read and written.
  cases.push_back(
      Case{"clip", size, [clip] { benchmark::DoNotOptimize(clip()); }, {"copy_gradients"}}.moving(12, 3));
}

/// The search for infinities and NaNs with the largest magnitude, and then the division by the scale.
void add_unscaling(std::vector<Case>& cases) {
  const auto scaled = std::make_shared<sim::ScaledGradients>();
  scaled->sites.push_back({"weight", sim::GradientSite::Kind::weight, {0}});
  scaled->values.scales.push_back(1024);
  const std::vector<float> values = scaled->values.gradients.emplace_back(gradient()).to_floats();
  const sim::Gradients unscaled = sim::unscale(*scaled);
  for (std::size_t i = 0; i < size; i += 101)
    require(unscaled.parameters[0].element(i) == values[i] / 1024, "unscale_check");
  require(!sim::summarise(*scaled, nullptr).found_nonfinite, "unscale_check");
  cases.push_back(Case{"unscale_check",
                       size,
                       [scaled] {
                         benchmark::DoNotOptimize(sim::summarise(*scaled, nullptr));
                         benchmark::DoNotOptimize(sim::unscale(*scaled));
                       },
                       {"copy_gradients"}}
                      .moving(12, 2));
}

}  // namespace

void add_update_cases(std::vector<Case>& cases) {
  add_copy(cases);
  add_adamw_8bit(cases);
  add_clipping(cases);
  add_unscaling(cases);
}

}  // namespace bench
