#include "sim/trainer/data_parallel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "fp16/half.h"
#include "sim/tensor/tensor_contents.h"
#include "tests/sim/trainer/ranks.h"

namespace {

using sim::AllReduce;
using sim::Tensor;
using training_runs::data_of;
using training_runs::run;
using training_runs::Run;
using training_runs::same_state;
using training_runs::Setup;
using training_runs::with_ranks;

constexpr AllReduce in_fp32{.precision = sim::AllReducePrecision::fp32};

/// Digits of which every one comes `times` times in a batch of `batch`: first all different ones, then these again.
class Repeated final : public sim::Dataset {
 public:
  Repeated(std::size_t batch, std::size_t times) : Dataset("repeated"), batch_(batch), times_(times) {}
  sim::DataKind kind() const override { return sim::DataKind::images; }
  std::size_t training_size() const override { return digits().training_size(); }
  std::size_t test_size() const override { return digits().test_size(); }
  std::vector<std::uint32_t> epoch_order(std::uint64_t, std::uint64_t) const override {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; order.size() < training_size(); ++i) {
      const std::size_t of_batch = i % batch_, different = batch_ / times_;
      order.push_back(static_cast<std::uint32_t>(i / batch_ * different + of_batch % different));
    }
    return order;
  }

 private:
  static const sim::Dataset& digits() { return data_of(sim::DataKind::images); }
  sim::Batch make_batch(Part, std::span<const std::uint32_t> indices) const override {
    return digits().training_batch(indices);
  }

  std::size_t batch_, times_;
};

/// A run on repeated digits.
Run start_repeated(const Setup& setup, const sim::Dataset& data) {
  const auto [name, model_options] = names::parse_numeric_spec(setup.model);
  std::unique_ptr<sim::Model> model =
      sim::find_model(name).make(data_of(sim::DataKind::images), model_options);
  const sim::Model& borrowed = *model;
  const auto [scaler, scaler_options] = names::parse_numeric_spec(setup.scaler);
  const sim::PrecisionPolicy policy = sim::make_precision_policy(setup.policy);
  return {.model = std::move(model),
          .data = data,
          .trainer = sim::Trainer(
              borrowed, data, policy, sim::make_any_scaler(scaler, scaler_options),
              sim::make_optimizer("momentum", {{"learning_rate", 0.05}}, policy.update_arithmetic(3, 1)),
              sim::make_schedule(), setup.options)};
}

/// The loop of data-parallel training written out: each rank's gradients by a tape of its own, their mean by
/// all_reduce_mean over all parameters at once, one update.
class RanksByHand {
 public:
  RanksByHand(const Setup& setup, float scale)
      : setup_(setup),
        scale_(scale),
        policy_(sim::make_precision_policy(setup.policy)),
        model_(training_runs::make_model(setup.model)),
        state_(sim::ModelState::initial(*model_, setup.options.seed)),
        optimizer_(
            sim::make_optimizer("momentum", {{"learning_rate", 0.05}}, policy_.update_arithmetic(3, 1))) {
    for (std::size_t i = 0; i < state_.weights.size(); ++i)
      state_.weights[i] = sim::rounded(state_.weights[i], sim::kept_format(policy_, state_.specs[i]));
  }

  /// What the loss of the step is.
  float step(std::uint64_t number) {
    const std::size_t ranks = setup_.options.parallel.ranks,
                      micro_batches = setup_.options.accumulation_steps;
    std::vector<std::vector<float>> messages;
    std::vector<std::vector<Tensor>> gradients(ranks);
    std::vector<double> losses(micro_batches);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      for (std::size_t micro = 0; micro < micro_batches; ++micro)
        losses[micro] += add_gradients(gradients[rank], number * micro_batches + micro, {rank, ranks});
      messages.emplace_back();
      for (const Tensor& gradient : gradients[rank]) {
        for (const float value : gradient.to_floats()) messages.back().push_back(sent(value));
      }
    }
    const std::vector<std::span<const float>> views(messages.begin(), messages.end());
    update(gradients.front(), sim::all_reduce_mean(views, setup_.options.parallel.all_reduce).values);
    float loss = 0;
    for (const double of_ranks : losses)
      loss += static_cast<float>(of_ranks / static_cast<double>(ranks) / static_cast<double>(micro_batches));
    return loss;
  }

  const sim::ModelState& state() const { return state_; }

 private:
  float sent(float value) const {
    const fp16::Format& format = sim::wire_format(setup_.options.parallel.all_reduce.precision);
    if (format == fp16::binary32) return value;
    if (format == fp16::binary16) return static_cast<float>(fp16::half(value));
    return static_cast<float>(
        fp16::decode<fp16::bfloat16>(fp16::encode<fp16::bfloat16>(static_cast<double>(value)).bits));
  }

  double add_gradients(std::vector<Tensor>& sums, std::uint64_t micro_batch, sim::Shard shard) {
    sim::BatchSampler batches(data_of(sim::DataKind::images), setup_.options.seed, setup_.options.batch);
    const sim::RecordedStep step =
        sim::record_step(*model_, state_, batches.batch(micro_batch, shard), policy_,
                         {.seed = setup_.options.seed, .step = micro_batch, .shard = shard});
    sim::SiteGradients next = step.tape.backward(
        step.forward.loss,
        {.loss_scale = scale_, .mean_over = static_cast<float>(setup_.options.accumulation_steps)});
    for (std::size_t i = 0; i < state_.weights.size(); ++i) {
      if (sums.size() == i) {
        sums.push_back(std::move(next.gradients[i]));
        continue;
      }
      std::vector<float> sum = sums[i].to_floats(), term = next.gradients[i].to_floats();
      std::ranges::transform(sum, term, sum.begin(), std::plus<>());
      sums[i] = sim::rounded(Tensor::from(sums[i].shape(), sum), sums[i].format());
    }
    return step.tape.value(step.forward.loss).element(0);
  }

  void update(const std::vector<Tensor>& like, std::span<const float> mean) {
    optimizer_->begin_step();
    for (std::size_t i = 0; i < state_.weights.size(); ++i) {
      const Tensor stored =
          sim::rounded(Tensor::from(like[i].shape(), mean.first(like[i].size())), like[i].format());
      mean = mean.subspan(like[i].size());
      std::vector<float> unscaled = stored.to_floats();
      for (float& g : unscaled) g *= 1 / scale_;
      optimizer_->update(i, state_.weights[i],
                         sim::rounded(Tensor::from(stored.shape(), unscaled), policy_.unscaled_gradients));
    }
  }

  Setup setup_;
  float scale_;
  sim::PrecisionPolicy policy_;
  std::unique_ptr<sim::Model> model_;
  sim::ModelState state_;
  std::unique_ptr<sim::Optimizer> optimizer_;
};

std::vector<AllReduce> all_kinds() {
  std::vector<AllReduce> kinds;
  for (const sim::AllReduceAlgorithm algorithm : sim::all_reduce_algorithms) {
    for (const sim::AllReducePrecision precision : sim::all_reduce_precisions) {
      for (const sim::AllReduceDivision division : sim::all_reduce_divisions)
        kinds.push_back({.algorithm = algorithm, .precision = precision, .division = division});
    }
  }
  return kinds;
}

void check_against_hand(const Setup& setup, int steps) {
  Run trained = run(setup, steps);
  RanksByHand hand(setup, 1024);
  for (int step = 0; step < steps; ++step)
    CHECK(trained.steps[static_cast<std::size_t>(step)].loss == hand.step(static_cast<std::uint64_t>(step)));
  for (std::size_t i = 0; i < hand.state().weights.size(); ++i)
    CHECK(same_bytes(trained.trainer.state().weights[i], hand.state().weights[i]));
}

Setup by_hand(const char* policy, std::size_t ranks, const AllReduce& how, std::size_t micro_batches = 1) {
  Setup setup = with_ranks(ranks, how,
                           {.model = "mlp:hidden1=16:hidden2=8",
                            .policy = policy,
                            .scaler = "static:scale=1024",
                            .optimizer = "momentum:learning_rate=0.05",
                            .schedule = "constant"});
  setup.options.accumulation_steps = micro_batches;
  return setup;
}

}  // namespace

TEST_CASE("data-parallel: a run is the loop written out, for all orders, precisions and divisions") {
  for (const AllReduce& how : all_kinds()) {
    INFO(sim::name_of(how.algorithm) << ' ' << sim::name_of(how.precision) << ' '
                                     << sim::name_of(how.division));
    check_against_hand(by_hand("amp", 3, how), 3);
  }
}

TEST_CASE("data-parallel: gradients in binary64 are rounded once on their way to halves") {
  const double above_tie = 1 + 0x1p-11 + 0x1p-40;
  std::vector<sim::SiteGradients> ranks(2);
  for (sim::SiteGradients& rank : ranks) {
    rank.gradients.emplace_back(sim::Shape{1}, fp16::binary64);
    rank.gradients.front().elements<double>()[0] = above_tie;
    rank.scales = {1};
  }
  const std::vector<sim::GradientSite> sites{{"w", sim::GradientSite::Kind::weight, {}}};
  const std::vector<sim::SiteGradients*> own{&ranks[0], &ranks[1]};
  sim::VirtualRanks exchange(2);
  sim::all_reduce_gradients(
      sites, own, {.precision = sim::AllReducePrecision::fp16, .division = sim::AllReduceDivision::after},
      exchange);
  CHECK(ranks[0].gradients.front().element(0) == 1 + 0x1p-10);
}

TEST_CASE("data-parallel: a run is the loop written out, for numbers of ranks, policies and micro-batches") {
  for (const std::size_t ranks : {1, 2, 3, 4, 8}) {
    for (const char* policy : {"fp32", "amp", "O2", "O3"}) {
      for (const std::size_t micro_batches : {1, 3}) {
        INFO(ranks << ' ' << policy << ' ' << micro_batches);
        AllReduce how{.division = sim::AllReduceDivision::after};
        if (ranks == 1) how = in_fp32;  // one rank exchanges nothing
        check_against_hand(by_hand(policy, ranks, how, micro_batches), 3);
      }
    }
  }
}

TEST_CASE("data-parallel: ranks that all see the same examples are one rank that sees them once") {
  // In pairs of pairs all sums of equal numbers are exact, as are quotients by powers of two.
  const AllReduce in_pairs{.algorithm = sim::AllReduceAlgorithm::recursive_doubling,
                           .precision = sim::AllReducePrecision::fp32};
  for (const std::size_t ranks : {2, 4, 8}) {
    const Repeated repeated(8 * ranks, ranks), once(8, 1);
    for (const char* model : {"mlp:hidden1=16:hidden2=8", "cnn:channels=2"}) {
      INFO(ranks << ' ' << model);
      Setup one{.model = model,
                .policy = "fp32",
                .scaler = "none",
                .options = {.batch = 8, .seed = 3, .twin_every = 2}};
      Setup many = one;
      many.options.batch = 8 * ranks;
      many.options.parallel = {.ranks = ranks, .all_reduce = in_pairs};
      Run expected = start_repeated(one, once), found = start_repeated(many, repeated);
      expected.train(4), found.train(4);
      CHECK(same_state(expected.trainer.state(), found.trainer.state()));
      for (std::size_t i = 0; i < 4; ++i) CHECK(expected.steps[i].loss == found.steps[i].loss);
      CHECK(sim::total_of(found.steps[2].twin).nonzero == sim::total_of(expected.steps[2].twin).nonzero);
      CHECK(sim::total_of(found.steps[2].twin).relative_error() < 1e-6);
    }
  }
}

TEST_CASE("data-parallel: one rank takes no notice of how many would exchange") {
  Setup setup{.options = {.batch = 16, .seed = 3, .statistics_every = 2}};
  const Run plain = run(setup, 5);
  setup.options.parallel = {.all_reduce = {.algorithm = sim::AllReduceAlgorithm::direct},
                            .looks_before_exchange = true};
  const Run alone = run(setup, 5);
  CHECK(same_state(plain.trainer.state(), alone.trainer.state()));
  CHECK(plain.trainer.memory().peak_bytes() == alone.trainer.memory().peak_bytes());
}

TEST_CASE("data-parallel: orders are different runs where they differ, and only there") {
  const auto trained = [](std::size_t ranks, const AllReduce& how) {
    Run r = run(by_hand("amp", ranks, how), 4);
    return r.trainer.save().arrays.front().bytes;
  };
  const auto of = [](sim::AllReduceAlgorithm algorithm) { return AllReduce{.algorithm = algorithm}; };
  using enum sim::AllReduceAlgorithm;
  for (const sim::AllReduceAlgorithm algorithm : sim::all_reduce_algorithms)
    CHECK(trained(2, of(algorithm)) == trained(2, of(ring)));  // a + b = b + a
  CHECK(trained(4, of(ring)) != trained(4, of(direct)));
  CHECK(trained(4, of(direct)) != trained(4, of(direct_descending)));
  CHECK(trained(4, of(recursive_doubling)) != trained(4, of(recursive_halving_far_first)));
  CHECK(trained(4, of(recursive_doubling)) == trained(4, of(rabenseifner)));
  CHECK(trained(4, of(ring)) != trained(4, {.precision = sim::AllReducePrecision::fp32}));
  CHECK(trained(3, of(ring)) != trained(3, {.division = sim::AllReduceDivision::after}));
  CHECK(trained(4, of(ring)) != trained(2, of(ring)));
}

namespace {

/// The largest S = 2^k at which the gradients of a rank are finite in binary16; of four equal ranks the sum is not.
double scale_of_overflowing_sum(const Setup& setup, const sim::Dataset& data) {
  Setup unscaled = setup;
  unscaled.scaler = "none";
  unscaled.options.parallel = {};
  unscaled.options.batch = 8;
  unscaled.options.statistics_every = 1;
  Run first = start_repeated(unscaled, data);
  float largest = 0;
  const sim::PrecisionPolicy policy =
      sim::make_precision_policy(setup.policy);  // of which the tape keeps a reference
  const sim::RecordedStep step =
      sim::record_step(*first.model, first.trainer.state(), first.trainer.next_batch(), policy, {.seed = 3});
  const sim::SiteGradients gradients = step.tape.backward(step.forward.loss, {});
  for (std::size_t i = 0; i < first.trainer.state().weights.size(); ++i)
    for (const float g : gradients.gradients[i].to_floats()) largest = std::max(largest, std::abs(g));
  return std::exp2(15 - std::ilogb(largest));
}

}  // namespace

TEST_CASE("data-parallel: what overflows in an FP16 sum is found after the all-reduce, and not before it") {
  const Repeated repeated(32, 4), once(8, 1);
  Setup setup{.model = "mlp:hidden1=16:hidden2=8",
              .policy = "amp",
              .options = {.batch = 32, .seed = 3, .record_skips = true}};
  setup.options.parallel = {.ranks = 4, .all_reduce = {.division = sim::AllReduceDivision::after}};
  setup.scaler = "static:scale=" + names::number_text(scale_of_overflowing_sum(setup, once));
  const auto first_step = [&](const Setup& given) {
    Run r = start_repeated(given, repeated);
    r.train(1);
    bool finite = true;
    for (const Tensor& weight : r.trainer.state().weights) finite &= !sim::first_nonfinite(weight);
    return std::pair(r.steps.front(), finite);
  };
  const auto [after, finite_after] = first_step(setup);
  CHECK(after.skipped());
  CHECK(finite_after);
  REQUIRE(after.skip);
  CHECK(after.skip->place == sim::SkipRecord::Place::sum);
  CHECK(sim::describe(*after.skip).find("summed over 4 ranks whose own are finite: a smaller scale cures") !=
        std::string::npos);
  CHECK(!after.unseen_overflow);

  setup.options.parallel.looks_before_exchange = true;
  const auto [before, finite_before] = first_step(setup);
  CHECK(!before.skipped());
  CHECK(!finite_before);
  REQUIRE(before.unseen_overflow);
  CHECK(before.unseen_overflow->layer == after.skip->layer);
  CHECK(sim::describe_applied(*before.unseen_overflow)
            .find("summed over 4 ranks whose own are finite, and was applied unseen, ") != std::string::npos);

  // The weights are then what is not finite in each step that follows.
  Run gone = start_repeated(setup, repeated);
  gone.train(2);
  REQUIRE(gone.steps.back().skip);
  CHECK(gone.steps.back().skip->is_of_weight());
  CHECK(!gone.steps.back().unseen_overflow);

  // Divided before or in FP32 nothing overflows.
  for (const AllReduce& how : {AllReduce{}, AllReduce{.precision = sim::AllReducePrecision::fp32,
                                            .division = sim::AllReduceDivision::after}}) {
    setup.options.parallel = {.ranks = 4, .all_reduce = how};
    CHECK(!first_step(setup).first.skipped());
  }
}

TEST_CASE("data-parallel: what one rank finds before the all-reduce counts for all") {
  Setup setup = with_ranks(4, {}, {.scaler = "static:scale=1099511627776"});
  setup.options.record_skips = true;
  for (const bool before : {false, true}) {
    setup.options.parallel.looks_before_exchange = before;
    const Run r = run(setup, 1);
    CHECK(r.steps.front().skipped());
    REQUIRE(r.steps.front().skip);
    CHECK(r.steps.front().skip->place == sim::SkipRecord::Place::gradient);
    CHECK(sim::describe(*r.steps.front().skip).find(" on rank 0: ") != std::string::npos);
  }
}

TEST_CASE("data-parallel: batch norm takes its shard's statistics, and the running ones are rank 0's") {
  const std::string model = training_runs::small_spec("cnn");
  Setup setup = with_ranks(3, in_fp32, {.model = model, .policy = "fp32", .scaler = "none"});
  const Run trained = run(setup, 1);
  const std::unique_ptr<sim::Model> network = training_runs::make_model(model);
  const sim::ModelState initial = sim::ModelState::initial(*network, 3);
  const auto buffers_of = [&](sim::Shard shard) {
    sim::BatchSampler batches(data_of(sim::DataKind::images), 3, 24);
    sim::RecordedStep step =
        sim::record_step(*network, initial, batches.batch(0, shard), sim::find_precision_policy("fp32"),
                         {.seed = 3, .shard = shard});
    return std::move(*step.buffers);
  };
  const auto same = [](const sim::Buffers& a, const sim::Buffers& b) {
    return std::ranges::equal(a, b,
                              [](const auto& x, const auto& y) { return same_bytes(x.second, y.second); });
  };
  CHECK(same(trained.trainer.state().buffers, buffers_of({0, 3})));
  CHECK(!same(trained.trainer.state().buffers, buffers_of({1, 3})));
}

TEST_CASE("data-parallel: with synchronised batch norm FP64 ranks are one rank but for rounding") {
  Setup setup =
      with_ranks(1, in_fp32, {.model = training_runs::small_spec("cnn"), .policy = "fp64", .scaler = "none"});
  const Run whole = run(setup, 3);
  // The exchange is in binary32: 3 updates of 2^-24 relative error each, grown by what the network makes of them.
  const auto distance = [&](const Run& other) {
    double largest = 0;
    for (std::size_t i = 0; i < whole.trainer.state().weights.size(); ++i) {
      const Tensor &a = whole.trainer.state().weights[i], &b = other.trainer.state().weights[i];
      for (std::size_t k = 0; k < a.size(); ++k)
        largest = std::max(largest, std::abs(a.element(k) - b.element(k)));
    }
    return largest;
  };
  for (const std::size_t ranks : {2, 4}) {
    setup.options.parallel = {.ranks = ranks, .all_reduce = in_fp32};
    CHECK(distance(run(setup, 3)) > 1e-4);
    setup.options.parallel.sync_batch_norm = true;
    CHECK(distance(run(setup, 3)) < 1e-5);
  }
}

TEST_CASE("data-parallel: threads change no bit, and a run that is restored goes on as it would have") {
  for (const bool sync : {false, true}) {
    Setup setup = with_ranks(4, {.algorithm = sim::AllReduceAlgorithm::binary_tree},
                             {.model = training_runs::small_spec("cnn")});
    setup.options.parallel.sync_batch_norm = sync;
    setup.options.twin_every = 2;
    Run plain = run(setup, 6);
    Run first = run(setup, 3), second = training_runs::start(setup);
    second.trainer.restore(first.trainer.save());
    second.train(3);
    CHECK(same_state(plain.trainer.state(), second.trainer.state()));
    setup.options.threads = 3;
    Run threaded = run(setup, 6);
    CHECK(same_state(plain.trainer.state(), threaded.trainer.state()));
    CHECK(plain.trainer.memory().peak_bytes() == threaded.trainer.memory().peak_bytes());
  }
}

TEST_CASE(
    "data-parallel: measuring changes nothing under any scaler, and every scaler goes with ranks or says "
    "no") {
  for (const sim::ScalerRow& scaler : sim::scalers()) {
    INFO(scaler.name);
    Setup setup = with_ranks(3, {},
                             {.policy = scaler.kind == sim::ScalerKind::tensor ? "fp8" : "amp",
                              .scaler = std::string(scaler.name)});
    if (scaler.name == "ada_loss") {
      CHECK_THROWS_WITH_AS(
          training_runs::start(setup),
          "scaler 'ada_loss': 3 ranks would scale their gradients differently, which then have no "
          "mean; allowed: 1 rank",
          std::invalid_argument);
      continue;
    }
    Run plain = run(setup, 4);
    setup.options.twin_every = 1;
    setup.options.statistics_every = 1;
    setup.options.record_skips = true;
    Run measured = run(setup, 4);
    CHECK(same_state(plain.trainer.state(), measured.trainer.state()));
    CHECK(plain.trainer.save().loss_scalers == measured.trainer.save().loss_scalers);
    CHECK(plain.trainer.save().tensor_scaler == measured.trainer.save().tensor_scaler);
  }
}

TEST_CASE("data-parallel: a batch that ranks cannot share equally is refused") {
  Setup setup = with_ranks(4);
  setup.options.batch = 30;
  CHECK_THROWS_WITH_AS(training_runs::start(setup),
                       "a batch of 30 examples over 4 ranks; allowed: multiples of the ranks",
                       std::invalid_argument);
}
