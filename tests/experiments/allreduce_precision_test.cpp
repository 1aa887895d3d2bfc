#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "experiments/allreduce_precision/findings.h"
#include "experiments/allreduce_precision/gradients.h"
#include "sim/tape/gradients.h"

namespace {

using namespace experiments::allreduce_precision;
using experiments::TrainingOptions;
using experiments::TrainingSetup;
using sim::AllReduceDivision;

constexpr float infinity = std::numeric_limits<float>::infinity();

WorkerGradients equal_workers(std::size_t count, const std::vector<float>& values) {
  WorkerGradients gradients{.arrays = {values}, .workers = {}};
  gradients.workers.assign(count, gradients.arrays[0]);
  return gradients;
}

Measured measure_one(const WorkerGradients& gradients, AllReduceDivision division) {
  const std::vector<sim::AllReduce> kinds{usual_with(division)};
  const std::vector<Measured> measured = measure(
      gradients, {.source = Source::network, .scale_log2 = 3, .workers = gradients.workers.size()}, kinds, 1);
  REQUIRE(measured.size() == 1);
  return measured[0];
}

/// Findings made up: an all-reduce at this scale has lost so much.
Measured made(int scale_log2, std::size_t workers, double relative_error, double inputs_overflow = 0) {
  Measured measured{.setting = {.source = Source::normal, .scale_log2 = scale_log2, .workers = workers},
                    .how = usual,
                    .loss = {},
                    .fraction_inputs_flushed = 0,
                    .fraction_inputs_overflow = inputs_overflow,
                    .relative_error_of_one_rounding = 0};
  measured.loss.twin_square = 1;
  measured.loss.error_square = relative_error * relative_error;
  measured.loss.nonfinite = std::isfinite(relative_error) ? 0 : 1;
  return measured;
}

/// A small network after a few steps, and what its pool is made with.
struct SmallNetwork {
  TrainingOptions training{.model = "mlp:hidden1=8:hidden2=8", .batch = 16, .steps = 5};
  TrainingSetup setup{training};
  sim::Trainer trainer = setup.trainer({});
  sim::PrecisionPolicy policy = experiments::policy_from_option("amp");
  PoolOptions options{
      .micro_batches = 3, .examples = 16, .elements = 1 << 20, .workers = 64, .seed = 0, .threads = 1};

  SmallNetwork() {
    for (int step = 0; step < setup.steps(); ++step) trainer.step();
  }
  GradientPool pool() const { return {setup, trainer, policy, options}; }

  /// All gradients of the parameters for the micro-batch that the trainer would see `ahead` steps from now.
  std::vector<float> gradient(std::size_t ahead, float scale) const {
    sim::BatchSampler batches(setup.dataset(), 0, 16);
    const std::uint64_t number = trainer.steps_done() + ahead;
    const sim::RecordedStep step =
        sim::record_step(setup.model(), trainer.state(), batches.batch(number), policy, {.step = number});
    const sim::SiteGradients gradients = step.tape.backward(step.forward.loss, {.loss_scale = scale});
    std::vector<float> all;
    for (std::size_t i = 0; i < gradients.gradients.size(); ++i) {
      if (!sim::is_weight(step.tape.sites()[i])) continue;
      const std::vector<float> values = gradients.gradients[i].to_floats();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
};

}  // namespace

TEST_CASE("allreduce_precision: what is lost, by hand") {
  const float tiny = 0x1p-24f;
  const WorkerGradients gradients = equal_workers(8, {tiny, 16384, 0, -3});
  const double norm = std::sqrt(0x1p-48 + 0x1p28 + 9);

  const Measured before = measure_one(gradients, AllReduceDivision::before);
  CHECK(before.setting == Setting{.source = Source::network, .scale_log2 = 3, .workers = 8});
  CHECK(before.loss.fraction_flushed() == doctest::Approx(1.0 / 3));
  CHECK(before.fraction_inputs_flushed == doctest::Approx(1.0 / 3));
  CHECK(before.loss.relative_error() == doctest::Approx(0x1p-24 / norm));
  CHECK(!before.overflows());
  CHECK(before.relative_error_of_one_rounding == 0);

  const Measured after = measure_one(gradients, AllReduceDivision::after);
  CHECK(after.loss.fraction_flushed() == 0);
  CHECK(after.fraction_inputs_flushed == 0);
  CHECK(after.loss.fraction_overflow() == doctest::Approx(1.0 / 3));
  CHECK(after.overflows());
  CHECK(after.fraction_inputs_overflow == 0);

  const Measured infinite = measure_one(equal_workers(2, {infinity, 1, 1, 1}), AllReduceDivision::before);
  CHECK(infinite.overflows());
  CHECK(infinite.fraction_inputs_overflow == 0.25);
}

TEST_CASE("allreduce_precision: the error of one rounding is that of the exact mean") {
  WorkerGradients gradients{.arrays = {{1}, {1 + 0x1p-10f}}, .workers = {}};
  for (const std::vector<float>& array : gradients.arrays) gradients.workers.push_back(array);
  const Measured measured = measure_one(gradients, AllReduceDivision::before);
  const double half_an_ulp = 0x1p-11;  // the mean is a tie, 1 + 2^-11, and goes to 1
  CHECK(measured.relative_error_of_one_rounding == doctest::Approx(half_an_ulp / (1 + half_an_ulp)));
}

TEST_CASE("allreduce_precision: from how many workers on a mean overflows") {
  const std::vector<Measured> all{made(7, 2, 0.1), made(7, 4, infinity, 0.5), made(7, 16, infinity),
                                  made(7, 8, infinity), made(9, 2, infinity)};
  CHECK(first_overflow(all, Source::normal, 7, usual) == 8u);  // at 4 the workers' own gradients overflow
  CHECK(first_overflow(all, Source::normal, 9, usual) == 2u);
  CHECK(!first_overflow(all, Source::network, 7, usual));
  CHECK(!first_overflow(all, Source::normal, 7, usual_with(AllReduceDivision::after)));
}

TEST_CASE("allreduce_precision: good scales lie without a gap around the best") {
  const auto window = [](const std::vector<Measured>& scales) {
    const auto found = usable_scales(scales, Source::normal, 4, AllReduceDivision::before);
    return found ? std::vector<int>{found->lowest, found->highest} : std::vector<int>{};
  };
  CHECK(window({made(0, 4, 4), made(1, 4, 1.24), made(2, 4, 1), made(3, 4, 1.2), made(4, 4, infinity)}) ==
        std::vector<int>{1, 3});
  CHECK(window({made(0, 4, 1.1), made(1, 4, 1.3), made(2, 4, 1), made(3, 4, infinity), made(4, 4, 1)}) ==
        std::vector<int>{2, 2});
  CHECK(window({made(0, 4, infinity)}).empty());
  CHECK(window({made(0, 8, 1)}).empty());
  const std::vector<Measured> scales{made(0, 4, 1), made(2, 4, infinity, 0.1), made(1, 4, infinity, 0.1),
                                     made(0, 8, infinity, 0.1)};
  CHECK(first_input_overflow(scales, Source::normal, 4) == 1);
  CHECK(!first_input_overflow(scales, Source::normal, 16));
}

TEST_CASE("allreduce_precision: numbers of workers") {
  using Workers = std::vector<std::size_t>;
  CHECK(measured_workers(3) == Workers{2, 4, 8});
  CHECK(shown_workers(12) == Workers{16, 256, 4096});
  CHECK(shown_workers(6) == Workers{4, 16, 64});
  CHECK(shown_workers(2) == Workers{2, 4});
  CHECK(shown_workers(1) == Workers{2});
}

TEST_CASE("allreduce_precision: the network's workers have the micro-batches that come next") {
  const SmallNetwork network;
  const GradientPool pool = network.pool();
  const WorkerGradients made = pool.gradients(Source::network, 6);
  REQUIRE(made.workers.size() == 64);
  REQUIRE(made.arrays.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(made.arrays[i] == network.gradient(i, 64));
  CHECK(pool.elements() == made.arrays[0].size());
  std::set<const float*> drawn;
  for (std::size_t worker = 0; worker < 64; ++worker) {
    const float* data = made.workers[worker].data();
    if (worker < 3) CHECK(data == made.arrays[worker].data());
    if (worker >= 3) drawn.insert(data);
  }
  CHECK(drawn == std::set<const float*>{made.arrays[0].data(), made.arrays[1].data(), made.arrays[2].data()});
}

TEST_CASE("allreduce_precision: a sample of the elements keeps their order") {
  SmallNetwork network;
  network.options.elements = 50;
  const GradientPool pool = network.pool();
  const std::vector<float> all = network.gradient(0, 1);
  const std::vector<float> sample = pool.gradients(Source::network, 0).arrays[0];
  REQUIRE(sample.size() == 50);
  std::size_t place = 0;
  for (const float value : sample) {
    while (place < all.size() && all[place] != value) ++place;
    REQUIRE(place < all.size());
    ++place;
  }
}

TEST_CASE("allreduce_precision: normal workers have the pool's mean and deviation") {
  SmallNetwork network;
  network.options.workers = 2000;
  const GradientPool pool = network.pool();
  constexpr float scale = 1024;
  const WorkerGradients made = pool.gradients(Source::normal, 10);
  REQUIRE(made.arrays.size() == 2000);
  std::vector<std::vector<float>> twins;
  for (std::size_t i = 0; i < 3; ++i) twins.push_back(network.gradient(i, scale));
  const double count = 2000, ulp = 0x1p-24;
  std::size_t spread = 0, wrong_means = 0, wrong_deviations = 0;
  for (std::size_t element = 0; element < pool.elements(); ++element) {
    double mean = 0, square = 0, drawn_mean = 0, drawn_square = 0;
    for (const auto& twin : twins) mean += double{twin[element]} / 3;
    for (const auto& twin : twins) square += std::pow(double{twin[element]} - mean, 2) / 2;
    for (const auto& worker : made.arrays) drawn_mean += double{worker[element]} / count;
    for (const auto& worker : made.arrays)
      drawn_square += std::pow(double{worker[element]} - drawn_mean, 2) / (count - 1);
    // Besides chance, five standard errors, what FP16 backward passes differ by from those in FP32.
    const double deviation = std::sqrt(square), difference = 0x1p-8 * std::fabs(mean) + 16 * ulp;
    wrong_means += std::fabs(drawn_mean - mean) > 5 * deviation / std::sqrt(count) + difference;
    if (deviation < 0x1p-3 * std::fabs(mean) || deviation < 1000 * ulp) continue;
    ++spread;
    wrong_deviations +=
        std::fabs(std::sqrt(drawn_square) / deviation - 1) > 5 / std::sqrt(2 * count) + 0x1p-4;
  }
  CHECK(spread > 100);
  CHECK(wrong_means <= pool.elements() / 500);
  CHECK(wrong_deviations <= spread / 100);
}

TEST_CASE("allreduce_precision: gradients do not depend on the threads") {
  SmallNetwork network;
  const GradientPool one = network.pool();
  network.options.threads = 3;
  const GradientPool three = network.pool();
  for (const Source source : sources)
    CHECK(one.gradients(source, 4).arrays == three.gradients(source, 4).arrays);
  CHECK(one.exponents() == three.exponents());
}
