/// Each shard of a batch computes what the whole batch on one tape would have for its examples.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sim/ops/batch_norm.h"
#include "sim/ops/scale.h"
#include "sim/ops/sum.h"
#include "sim/trainer/lock_step.h"
#include "tests/sim/training_runs.h"

namespace {

using sim::Tensor;
using training_runs::data_of;

constexpr std::size_t batch_size = 8;

sim::Batch batch_of(sim::DataKind kind, sim::Shard shard = {}) {
  return sim::BatchSampler(data_of(kind), 3, batch_size).batch(2, shard);
}

template <class Element>
void append(std::vector<Element>& all, const std::vector<Element>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

/// A model with random numbers wherever a policy and a network have some, one tape for each shard.
struct Shards {
  std::unique_ptr<sim::Model> model;
  sim::PrecisionPolicy policy;
  sim::ModelState state = sim::ModelState::initial(*model, 3);
  sim::DataKind kind;

  sim::RecordedStep record(sim::Shard shard) const {
    return sim::record_step(*model, state, batch_of(kind, shard), policy,
                            {.seed = 3, .step = 2, .shard = shard});
  }
};

std::vector<double> elements_of(const Tensor& tensor) {
  std::vector<double> all;
  for (std::size_t i = 0; i < tensor.size(); ++i) all.push_back(tensor.element(i));
  return all;
}

/// Activations and their gradients at every layer, one shard's after another's.
struct AtLayers {
  std::vector<std::vector<double>> values, gradients;

  void add(const sim::RecordedStep& step, float loss_scale) {
    const sim::SiteGradients found = step.tape.backward(step.forward.loss, {.loss_scale = loss_scale});
    const std::vector<sim::GradientSite>& sites = step.tape.sites();
    values.resize(sites.size());
    gradients.resize(sites.size());
    for (std::size_t i = 0; i < sites.size(); ++i) {
      if (sites[i].kind == sim::GradientSite::Kind::weight) continue;
      append(values[i], elements_of(step.tape.value(sites[i].variable)));
      append(gradients[i], elements_of(found.gradients[i]));
    }
  }
};

AtLayers at_layers(const Shards& shards, std::size_t count) {
  AtLayers all;
  // The mean loss over a part weighs each example `count` times as much.
  for (std::size_t i = 0; i < count; ++i) all.add(shards.record({i, count}), 256 / static_cast<float>(count));
  return all;
}

}  // namespace

TEST_CASE("shards: those of a batch are its examples in their order") {
  for (const sim::DataKind kind : {sim::DataKind::images, sim::DataKind::text, sim::DataKind::scenes}) {
    const sim::Batch whole = batch_of(kind);
    for (const std::size_t count : {1, 2, 4, 8}) {
      sim::Batch joined;
      for (std::size_t i = 0; i < count; ++i) {
        const sim::Batch part = batch_of(kind, {i, count});
        CHECK(part.size == batch_size / count);
        joined.size += part.size;
        append(joined.inputs, part.inputs);
        append(joined.tokens, part.tokens);
        append(joined.labels, part.labels);
        append(joined.boxes, part.boxes);
      }
      CHECK(joined.size == whole.size);
      CHECK(joined.inputs == whole.inputs);
      CHECK(joined.tokens == whole.tokens);
      CHECK(joined.labels == whole.labels);
      CHECK(joined.boxes == whole.boxes);
    }
  }
}

TEST_CASE("shards: random numbers are those of the examples' places in the whole batch") {
  struct Case {
    const char *model, *policy;
    sim::DataKind kind;
  };
  for (const Case& c :
       {Case{"mlp", "O3:activation_rounding=stochastic:gradient_rounding=stochastic", sim::DataKind::images},
        Case{"transformer:layers=1:width=16:heads=2:dropout=0.5", "fp32", sim::DataKind::text},
        Case{"transformer:layers=1:width=16:heads=2:dropout=0.5",
             "amp:activation_rounding=stochastic:gradient_rounding=stochastic", sim::DataKind::text},
        Case{"lstm:layers=2:width=16",
             "fp16:reductions=binary32:activation_rounding=stochastic:gradient_rounding="
             "stochastic",
             sim::DataKind::text},
        Case{"transformer:layers=1:width=32:heads=2", "mxfp4", sim::DataKind::text}}) {
    INFO(c.model << ' ' << c.policy);
    const Shards shards{.model = training_runs::make_model(training_runs::small_spec(c.model)),
                        .policy = sim::make_precision_policy(c.policy),
                        .kind = c.kind};
    const AtLayers whole = at_layers(shards, 1);
    for (const std::size_t count : {2, 4, 8}) {
      const AtLayers parts = at_layers(shards, count);
      CHECK(parts.values == whole.values);
      CHECK(parts.gradients == whole.gradients);
    }
  }
}

TEST_CASE("shards: the numbers of no two of them are the same") {
  const sim::PrecisionPolicy policy = sim::make_precision_policy("O3:gradient_rounding=stochastic");
  const Tensor weights = Tensor::zeros({1000}, fp16::binary16);
  const auto gradient_of = [&](std::size_t shard) {
    sim::Tape tape(policy, {.shard = {shard, 2}});
    const sim::Variable w = tape.parameter("w", weights);
    const sim::Variable scaled =
        tape.apply(sim::scale, {w}, {}, sim::ScaleOptions{.backward_factor = 1 + 0x1p-11});
    return tape.backward(tape.apply(sim::sum, {scaled}), {}).gradients[0].to_floats();
  };
  const std::vector<float> first = gradient_of(0), second = gradient_of(1);
  std::size_t different = 0;
  for (std::size_t i = 0; i < first.size(); ++i) different += first[i] != second[i];
  // Each of a pair is 1 or 1 + 2^-10 with probability 1/2: 500 differ, with a deviation of 15.8.
  CHECK(std::abs(static_cast<double>(different) - 500) < 6 * 15.8);
}

TEST_CASE("shards: a cast of a parameter is the same on all of them") {
  const sim::PrecisionPolicy policy = sim::make_precision_policy("amp:activation_rounding=stochastic");
  const std::unique_ptr<sim::Model> model = training_runs::make_model(training_runs::small_spec("mlp"));
  const sim::ModelState state = sim::ModelState::initial(*model, 3);
  const auto copies_of = [&](sim::Shard shard) {
    const sim::RecordedStep step = sim::record_step(*model, state, batch_of(sim::DataKind::images, shard),
                                                    policy, {.seed = 3, .step = 2, .shard = shard});
    std::vector<std::vector<double>> copies;
    for (std::size_t node = 0; node <= step.forward.loss.index; ++node) {
      const sim::ValueName name = step.tape.name_of({node});
      if (name.operation == "cast" && name.layer.ends_with("weight"))
        copies.push_back(elements_of(step.tape.value({node})));
    }
    return copies;
  };
  const auto first = copies_of({0, 2});
  CHECK(first.size() == 3);
  CHECK(first == copies_of({1, 2}));
}

namespace {

/// Batch norm of one shard, evaluated by itself but for the statistics.
struct NormOfShard {
  std::vector<Tensor> gradients;
  Tensor output;
};

class LockStepGathering final : public sim::ShardGathering {
 public:
  LockStepGathering(sim::LockStep& step, std::size_t rank) : step_(step), rank_(rank) {}
  std::vector<double> gather(std::span<const double> own) override { return step_.gather(rank_, own); }

 private:
  sim::LockStep& step_;
  std::size_t rank_;
};

Tensor values_of_shard(fp16::Format format, sim::Shard shard, double phase) {
  constexpr std::size_t images = 8, channels = 3, pixels = 4;
  Tensor tensor({images / shard.count, channels, 2, 2}, format);
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const double x =
        std::sin(phase + static_cast<double>(shard.index * images / shard.count * channels * pixels + i));
    if (format == fp16::binary64) tensor.elements<double>()[i] = x;
    if (format == fp16::binary32) tensor.elements<float>()[i] = static_cast<float>(x);
  }
  return tensor;
}

std::vector<NormOfShard> synchronised_norm(fp16::Format format, std::size_t count) {
  std::vector<NormOfShard> shards(count);
  sim::LockStep step(count);
  step.run([&](std::size_t rank) {
    const sim::Shard shard{rank, count};
    LockStepGathering gathering(step, rank);
    const Tensor x = values_of_shard(format, shard, 0),
                 weight = sim::rounded(Tensor::from({3}, std::vector{1.f, 2.f, 3.f}), format),
                 bias = sim::rounded(Tensor::from({3}, std::vector{0.f, 1.f, -1.f}), format);
    const std::vector<const Tensor*> inputs{&x, &weight, &bias};
    const sim::Arithmetic arithmetic{.reductions = fp16::binary32};
    const sim::OperationOptions options = sim::BatchNormOptions{};
    sim::OperationCall call{.inputs = inputs,
                            .options = options,
                            .arithmetic = arithmetic,
                            .output_format = format,
                            .training = true,
                            .random = {0, ""},
                            .shard = shard,
                            .gathering = &gathering};
    shards[rank].output = sim::batch_norm.forward(call);
    std::vector<sim::RoundedOutput> outputs;
    for (const Tensor* input : inputs) shards[rank].gradients.emplace_back(input->shape(), format);
    for (Tensor& gradient : shards[rank].gradients) outputs.push_back({&gradient});
    sim::batch_norm.backward({.inputs = inputs,
                              .output = shards[rank].output,
                              .saved = call.saved,
                              .options = options,
                              .arithmetic = arithmetic,
                              .training = true,
                              .random = {0, ""},
                              .shard = shard,
                              .gathering = &gathering,
                              .output_gradient = values_of_shard(format, shard, 0.5),
                              .input_gradients = outputs});
  });
  return shards;
}

}  // namespace

TEST_CASE("shards: synchronised batch norm is that of the whole batch") {
  const NormOfShard whole = std::move(synchronised_norm(fp16::binary64, 1).front());
  // Sums of 32 numbers of at most about 1 in another order: far below 1e-12.
  for (const std::size_t count : {2, 4, 8}) {
    const std::vector<NormOfShard> shards = synchronised_norm(fp16::binary64, count);
    std::vector<double> output, input_gradient, weight_gradient(3), bias_gradient(3);
    for (const NormOfShard& shard : shards) {
      append(output, elements_of(shard.output));
      append(input_gradient, elements_of(shard.gradients[0]));
      for (std::size_t c = 0; c < 3; ++c) {
        weight_gradient[c] += shard.gradients[1].element(c);
        bias_gradient[c] += shard.gradients[2].element(c);
      }
    }
    const auto near = [](const std::vector<double>& found, const Tensor& expected) {
      REQUIRE(found.size() == expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - expected.element(i)) < 1e-12);
    };
    near(output, whole.output);
    near(input_gradient, whole.gradients[0]);
    near(weight_gradient, whole.gradients[1]);
    near(bias_gradient, whole.gradients[2]);
  }
}
