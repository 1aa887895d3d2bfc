#include "sim/statistics/site_statistics.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/sim/ops/evaluation.h"
#include "tests/sim/training_runs.h"

using sim::SiteStatistics;
using sim::Tensor;

TEST_CASE("site statistics: every count and the norm of a tensor small enough to work out by hand") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const Tensor finite =
      tensor_of({2, 4}, {0, -0.0f, 0x1p-24f, -0x1p-15f, 0x1p-14f, 3, -4, 0}, fp16::binary16);
  const SiteStatistics s = sim::statistics_of(finite, 4, {.exact = 7, .inexact = 1, .flushed = 1});
  CHECK(s.total() == 8);
  CHECK(s.zero() == 3);
  CHECK(s.rounding.flushed == 1);
  CHECK(s.subnormal() == 2);
  CHECK(s.infinite() == 0);
  CHECK(s.nan() == 0);
  CHECK(s.norm() == doctest::Approx(5.0 / 4));
  CHECK(s.octaves_alive() == 25);  // 4 / 4 over 2^-25

  const SiteStatistics broken =
      sim::statistics_of(tensor_of({4}, {inf, -inf, nan, 2}, fp16::binary16), 2, {});
  CHECK(broken.infinite() == 2);
  CHECK(broken.nan() == 1);
  CHECK(!std::isfinite(broken.norm()));
  CHECK(broken.octaves_alive() == 25);

  const SiteStatistics nothing = sim::statistics_of(tensor_of({3}, {0, 0, 0}), 1, {});
  CHECK(nothing.norm() == 0);
  CHECK(nothing.octaves_alive() == -std::numeric_limits<double>::infinity());
}

TEST_CASE("site statistics: the norm is the sum of 16 partial sums in order, in every format and length") {
  for (const fp16::Format format : {fp16::binary16, fp16::bfloat16, fp16::binary32, fp16::binary64}) {
    for (const std::size_t size : {1, 15, 16, 17, 4095, 4096, 4097, 10'000}) {
      const Tensor tensor = normal_tensor({size}, "site statistics", format, 1e-3f);
      double sums[16] = {}, square = 0;
      for (std::size_t i = 0; i < size; ++i) sums[i % 16] += tensor.element(i) * tensor.element(i);
      for (const double sum : sums) square += sum;
      INFO(fp16::name_of(format), " ", size);
      CHECK(sim::statistics_of(tensor, 1, {}).square == square);
    }
  }
}

TEST_CASE("site statistics: of every model's gradients, counted one by one") {
  for (const sim::ModelRow& row : sim::models()) {
    const std::unique_ptr<sim::Model> model = training_runs::make_model(training_runs::small_spec(row.name));
    const sim::ModelState state = sim::ModelState::initial(*model, 3);
    sim::BatchSampler batches(training_runs::data_of(row.data), 3, 4);
    const sim::RecordedStep step =
        sim::record_step(*model, state, batches.batch(0), sim::find_precision_policy("O2"));
    const sim::SiteGradients run =
        step.tape.backward(step.forward.loss, {.loss_scale = 256, .count_rounding = true});
    const std::vector<SiteStatistics> statistics = sim::site_statistics(run);
    REQUIRE(statistics.size() == step.tape.sites().size());
    for (std::size_t site = 0; site < statistics.size(); ++site) {
      std::uint64_t zero = 0, subnormal = 0, infinite = 0;
      double square = 0;
      for (const double value : values_of(run.gradients[site])) {
        zero += value == 0;
        subnormal += value != 0 && std::fabs(value) < 0x1p-14;
        infinite += std::isinf(value);
        square += value * value;
      }
      INFO(row.name, " ", step.tape.sites()[site].name);
      const SiteStatistics& s = statistics[site];
      CHECK(s.total() == run.gradients[site].size());
      CHECK(s.zero() == zero);
      CHECK(s.subnormal() == subnormal);
      CHECK(s.infinite() == infinite);
      CHECK(s.norm() == doctest::Approx(std::sqrt(square) / 256).epsilon(1e-12));
      CHECK(s.rounding == run.rounding[site]);
    }
  }
}

TEST_CASE("site statistics: a trainer takes them at their steps, and they change nothing") {
  const auto train = [](std::size_t every) {
    return training_runs::run({.options = {.batch = 16, .seed = 3, .statistics_every = every}}, 5);
  };
  const training_runs::Run with = train(2), without = train(0);
  CHECK(training_runs::same_state(with.trainer.state(), without.trainer.state()));
  for (const sim::StepRecord& step : with.steps) {
    CHECK(step.statistics.size() == (step.step % 2 == 0 ? with.trainer.sites().size() : 0));
  }
  std::uint64_t rounded = 0;
  for (const SiteStatistics& s : with.steps.front().statistics) rounded += s.rounding.inexact;
  CHECK(rounded > 0);
  for (const sim::StepRecord& step : without.steps) CHECK(step.statistics.empty());
}

TEST_CASE("trainer: swallowed updates are counted per parameter") {
  // Momentum at a rate this small changes no FP16 weight but zeros: what is not zero swallows all of it.
  const training_runs::Run run = training_runs::run(
      {.policy = "O3", .scaler = "static:scale=128", .optimizer = "sgd:learning_rate=1e-9"}, 1);
  const sim::StepRecord& step = run.steps.front();
  REQUIRE(step.parameter_updates.size() == run.model->parameters().size());
  sim::UpdateCounts sum;
  for (std::size_t i = 0; i < step.parameter_updates.size(); ++i) {
    CHECK(step.parameter_updates[i].updates <= sim::element_count(run.model->parameters()[i].shape));
    CHECK(step.parameter_updates[i].swallowed <= step.parameter_updates[i].updates);
    sum += step.parameter_updates[i];
  }
  CHECK(step.updates == sum);
  CHECK(step.parameter_updates.front().swallowed > 0);
  CHECK(training_runs::run({.scaler = "static:scale=1e30"}, 1).steps.front().parameter_updates.empty());
}
