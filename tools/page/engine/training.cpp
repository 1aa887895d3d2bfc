#include "tools/page/engine/training.h"

#include <array>
#include <bit>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fp16/gemm.h"
#include "fp16/names.h"
#include "fp16/philox.h"
#include "sim/data/digits.h"
#include "sim/loss_scaling/registry.h"
#include "sim/models/registry.h"
#include "sim/optimizers/registry.h"
#include "sim/precision/precision_policy.h"
#include "sim/schedules/registry.h"
#include "sim/trainer/trainer.h"
#include "tools/halflab/selftest/fnv1a.h"
#include "tools/page/engine/answer.h"

namespace halflab::page {
namespace {

using Json = nlohmann::ordered_json;

/// Small enough that a browser makes dozens of steps a second.
struct Network {
  std::string_view name;
  std::string_view layers;  ///< what they compute and the loss
  std::unique_ptr<sim::Model> (*make)(const sim::Dataset&);
  std::size_t batch;
  std::string_view optimizer;
  double learning_rate;
};

constexpr std::array networks{
    Network{"autoencoder", "sigmoids, mean squared error",
            [](const sim::Dataset& data) { return sim::make_autoencoder(data, {.width = 96}); }, 24, "adam",
            0.03},
    Network{"mlp", "ReLU, softmax cross entropy",
            [](const sim::Dataset& data) { return sim::make_mlp(data, {.hidden1 = 64, .hidden2 = 32}); }, 64,
            "momentum", 0.05},
};
static_assert(names::has_unique_names(networks));

const sim::ImageDataset& digits() {
  static const sim::ImageDataset drawn = sim::draw_digits({.training_size = 1000, .test_size = 10});
  return drawn;
}

std::unique_ptr<sim::LossScaler> scaler_of(std::string_view spec) {
  const auto [name, options] = names::parse_numeric_spec(spec);
  return sim::make_scaler(name, options);
}

/// What another scaler can take the place of while a training goes on.
class ReplaceableScaler final : public sim::LossScaler {
 public:
  explicit ReplaceableScaler(std::unique_ptr<sim::LossScaler> present) : present_(std::move(present)) {}

  void replace(std::unique_ptr<sim::LossScaler> next) { present_ = std::move(next); }

  std::string_view name() const override { return present_->name(); }
  float scale() const override { return present_->scale(); }
  /// Always: the next scaler may.
  bool needs_exponents() const override { return true; }
  bool wants_twin(const sim::GradientSummary& summary) const override {
    return present_->wants_twin(summary);
  }
  float unscale_scale() const override { return present_->unscale_scale(); }
  std::string abort_reason() const override { return present_->abort_reason(); }
  sim::UpdateGranularity update_granularity() const override { return present_->update_granularity(); }
  names::NamedValues options() const override { return present_->options(); }
  names::NamedValues state() const override { return present_->state(); }
  void restore(const names::NamedValues& state) override { present_->restore(state); }

 private:
  sim::Decision decide(const sim::GradientSummary& summary) override { return present_->update(summary); }

  std::unique_ptr<sim::LossScaler> present_;
};

class Training {
 public:
  Training(const Network& network, std::string_view policy_spec, std::string_view scaler_spec,
           std::uint64_t seed)
      : model_(network.make(digits())),
        policy_(sim::make_precision_policy(policy_spec)),
        scaler_(new ReplaceableScaler(scaler_of(scaler_spec))),
        trainer_(*model_, digits(), policy_, std::unique_ptr<sim::LossScaler>(scaler_),
                 sim::make_optimizer(network.optimizer, {{"learning_rate", network.learning_rate}},
                                     policy_.update_arithmetic(seed, 1)),
                 sim::make_schedule(), {.batch = network.batch, .seed = seed, .statistics_every = 1}) {}
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  void replace_scaler(std::string_view spec) { scaler_->replace(scaler_of(spec)); }

  Json step() {
    const sim::StepRecord record = trainer_.step();
    Json gradients = Json::array();
    for (std::size_t i = 0; i < record.statistics.size(); ++i) {
      const sim::SiteStatistics& found = record.statistics[i];
      gradients.push_back({{"name", trainer_.sites()[i].name},
                           {"kind", sim::name_of(trainer_.sites()[i].kind)},
                           {"values", found.total()},
                           {"zero", found.zero()},
                           {"flushed", found.rounding.flushed},
                           {"nonfinite", found.infinite() + found.nan()}});
    }
    return {{"step", record.step},
            {"loss", record.loss},
            {"scale", record.scale},
            {"decision", sim::name_of(record.decision)},
            {"next_scale", trainer_.scale()},
            {"gradients", std::move(gradients)}};
  }

 private:
  std::unique_ptr<sim::Model> model_;
  sim::PrecisionPolicy policy_;
  ReplaceableScaler* scaler_;  ///< the trainer's
  sim::Trainer trainer_;
};

std::map<int, std::unique_ptr<Training>>& trainings() {
  static std::map<int, std::unique_ptr<Training>> present;
  return present;
}

Training& training_of(int number) {
  const auto found = trainings().find(number);
  if (found == trainings().end())
    throw std::invalid_argument("there is no training " + std::to_string(number));
  return *found->second;
}

Json of(const Network& network) {
  const std::vector<sim::ParameterSpec> specs = network.make(digits())->parameters();
  Json widths = Json::array({digits().image_shape().size()});
  std::size_t parameters = 0;
  for (const sim::ParameterSpec& spec : specs) {
    parameters += sim::element_count(spec.shape);
    if (spec.shape.size() == 2) widths.push_back(spec.shape[0]);
  }
  return {{"name", network.name},
          {"layers", network.layers},
          {"widths", std::move(widths)},
          {"parameters", parameters},
          {"batch", network.batch},
          {"optimizer", network.optimizer},
          {"learning_rate", network.learning_rate}};
}

/// Significands are any, of few digits, or next to a power of two, so that sums lie halfway between two floats, and next to
/// it. Exponents lie within a few octaves of one another, so that sums cancel; tiny ones so that some products end halfway
/// between the smallest floats, and others some octaves above.
std::vector<float> draw(const fp16::Philox& random, std::size_t count, bool tiny) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t word = random.bits(i), drawn = word >> 9;
    const std::array<std::uint32_t, 4> significands{drawn, drawn & 0x7ff001, drawn & 3, ~drawn | 0x7ffffc};
    const std::uint32_t exponent =
        tiny ? 127 - (word & 0x30 ? 75 : 64) - (word >> 3 & 1) : 124 + (word >> 3 & 7);
    values[i] =
        std::bit_cast<float>((word & 1) << 31 | exponent << 23 | (significands[word >> 1 & 3] & 0x7fffff));
  }
  return values;
}

std::uint64_t product_hash(std::uint64_t seed) {
  constexpr std::size_t size = 48;
  Fnv1a results;
  for (std::uint64_t product = 0; product < 64; ++product) {
    const bool tiny = product % 2 != 0;
    const auto operand = [&](std::uint64_t which) {
      return draw({.key = seed, .stream = 2 * product + which}, size * size, tiny);
    };
    const std::vector<float> a = operand(0), b = operand(1);
    std::vector<float> c(size * size);
    const auto matrix = [](const std::vector<float>& values) {
      return fp16::MatrixOperand{values.data(), fp16::binary32, size, size, size};
    };
    fp16::gemm(matrix(a), matrix(b), c.data(), size, fp16::Accumulation::fp32_fma_chain);
    for (const float value : c) results.add(std::bit_cast<std::uint32_t>(value), 32);
  }
  return results.value();
}

}  // namespace
}  // namespace halflab::page

using namespace halflab::page;

const char* engine_networks() {
  Json rows = Json::array();
  for (const Network& network : networks) rows.push_back(of(network));
  return answer(rows);
}

int engine_begin_training(const char* network, const char* policy, const char* scaler, std::uint64_t seed) {
  static int begun = 0;
  trainings()[begun] =
      std::make_unique<Training>(names::find_by_name(networks, "network", network), policy, scaler, seed);
  return begun++;
}

void engine_replace_scaler(int training, const char* scaler) {
  training_of(training).replace_scaler(scaler);
}

double engine_first_scale(const char* scaler) {
  return scaler_of(scaler)->scale();
}

const char* engine_step(int training) {
  return answer(training_of(training).step());
}

void engine_end_training(int training) {
  trainings().erase(training);
}

std::uint64_t engine_product_hash(std::uint64_t seed) {
  return product_hash(seed);
}
