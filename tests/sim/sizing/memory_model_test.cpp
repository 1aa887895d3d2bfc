#include "sim/sizing/memory_model.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "sim/optimizers/registry.h"
#include "tests/sim/sizing/transformer_layers.h"

namespace {

/// Kept by one layer in the middle, values, masks and what is saved.
sim::ActivationBytes kept_by_layer(const sim::Network& network, std::string_view policy,
                                   sim::Recomputation recomputation) {
  const sim::Activations kept =
      sim::activations(sim::typed(network, sim::find_precision_policy(policy)), recomputation);
  sim::ActivationBytes sum;
  for (std::size_t i = 0; i < network.operators.size(); ++i) {
    if (network.operators[i].repetition == 1) sum += kept.of_operators[i];
  }
  return sum;
}

/// A linear map of so many inputs and outputs without bias.
sim::Network linear_map(std::uint64_t features) {
  const std::string size = std::to_string(features);
  return sim::network_of(
      {.file = "test",
       .name = "map",
       .source = {},
       .symbols = {},
       .input_shape = {{"1", 0}, {size, 0}},
       .blocks = {{.name = "b",
                   .repeat = {"1", 0},
                   .operators = {{.name = "map",
                                  .operation = "linear",
                                  .sizes = {{"features", {size, 0}}, {"bias", {"0", 0}}}}}}}});
}

}  // namespace

TEST_CASE("memory model: a transformer layer keeps sbh(34 + 5as/h) bytes in FP16, less when it recomputes") {
  struct Sizes {
    std::uint64_t b, s, h, a;
  };
  for (const auto& [b, s, h, a] :
       std::vector<Sizes>{{1, 8, 16, 2}, {4, 512, 1024, 16}, {3, 2048, 12288, 96}}) {
    const sim::Network network = sim::network_of(test::transformer_layers(b, s, h, a));
    const std::uint64_t sbh = s * b * h, core = 5 * a * s * s * b, statistics = 2 * 2 * s * b * 4;
    for (const char* policy : {"O2", "O3", "fp16"}) {
      const sim::ActivationBytes all = kept_by_layer(network, policy, sim::Recomputation::none);
      CHECK(all.values + all.masks == 34 * sbh + core);
      CHECK(all.masks == 2 * sbh + a * s * s * b);
      CHECK(all.saved == statistics);
      const sim::ActivationBytes selective = kept_by_layer(network, policy, sim::Recomputation::selective);
      CHECK(selective.values + selective.masks == 34 * sbh);
      CHECK(kept_by_layer(network, policy, sim::Recomputation::full).total() == 2 * sbh);
    }
    // FP32: values of twice the size, masks of the same.
    const sim::ActivationBytes wide = kept_by_layer(network, "fp32", sim::Recomputation::none);
    CHECK(wide.values == 2 * (32 * sbh + 4 * a * s * s * b));
    CHECK(wide.masks == 2 * sbh + a * s * s * b);
  }
}

TEST_CASE("memory model: what is recomputed is there once, for the largest stretch") {
  const std::uint64_t b = 2, s = 16, h = 32, a = 4;
  const sim::Network network = sim::network_of(test::transformer_layers(b, s, h, a));
  const sim::TypedNetwork typed = sim::typed(network, sim::find_precision_policy("O3"));
  const std::uint64_t sbh = s * b * h, core = 5 * a * s * s * b, statistics = 2 * 2 * s * b * 4;
  CHECK(sim::activations(typed).recomputed == 0);
  CHECK(sim::activations(typed, sim::Recomputation::selective).recomputed == core);
  // All of a layer but its input, which is kept.
  CHECK(sim::activations(typed, sim::Recomputation::full).recomputed == 32 * sbh + core + statistics);
}

TEST_CASE("memory model: under autocast each linear map keeps a cast of its own, normalisations FP32") {
  const std::uint64_t b = 2, s = 16, h = 32, a = 4;
  const sim::Network network = sim::network_of(test::transformer_layers(b, s, h, a));
  const std::uint64_t sbh = s * b * h, as2b = a * s * s * b;
  for (const char* policy : {"amp", "O1", "bf16", "fp8"}) {
    const sim::ActivationBytes kept = kept_by_layer(network, policy, sim::Recomputation::none);
    // Three casts of x; query, key, value and the projection's input in FP16; softmax in FP32 and its
    // dropped-out cast in FP16; sums before both norms in FP32; casts for the wide map; gelu's input, under
    // Apex's lists cast to FP32, and what the narrow map has of its output, in FP16.
    const std::uint64_t gelu_input = policy == std::string_view("O1") ? 4 : 2;
    CHECK(kept.values ==
          3 * 2 * sbh + 4 * 2 * sbh + (4 + 2) * as2b + 2 * 4 * sbh + 2 * sbh + 4 * (gelu_input + 2) * sbh);
    CHECK(kept.masks == 2 * sbh + as2b);
  }
}

TEST_CASE("memory model: bytes per parameter by role follow from the policy") {
  const sim::Network network = linear_map(64);
  const std::uint64_t n = 64 * 64;
  const auto memory = [&](const char* policy, const char* optimizer) {
    return sim::step_memory(sim::typed(network, sim::find_precision_policy(policy)),
                            names::parse_spec(optimizer));
  };
  const sim::StepMemory amp = memory("amp", "adamw");
  CHECK(amp.weights == 4 * n);
  CHECK(amp.cast_weights == 2 * n);
  CHECK(amp.master_weights == 0);
  CHECK(amp.gradients == 4 * n);
  CHECK(amp.unscaled_gradients == 0);
  CHECK(amp.optimizer_state == 8 * n);
  CHECK(amp.fixed() == 18 * n);
  CHECK(amp.inference() == 6 * n);
  const sim::StepMemory o2 = memory("O2", "adamw");
  CHECK(o2.weights == 2 * n);
  CHECK(o2.master_weights == 4 * n);
  CHECK(o2.gradients == 2 * n);
  CHECK(o2.unscaled_gradients == 4 * n);
  CHECK(o2.fixed() == 20 * n);
  CHECK(memory("fp32", "adamw").fixed() == 16 * n);
  CHECK(memory("fp32", "momentum").fixed() == 12 * n);
  CHECK(memory("fp64", "adamw").fixed() == 32 * n);
  CHECK(memory("O3", "adamw").fixed() == 8 * n);
  CHECK(memory("amp", "adamw8bit").optimizer_state == 2 * n + 2 * 4 * n / 256);
}

TEST_CASE("memory model: batch norm stays in FP32 where the policy keeps it there, buffers with it") {
  sim::DescribedBlock block{.name = "b", .repeat = {"1", 0}, .operators = {}};
  block.operators.push_back({.name = "norm", .operation = "batch_norm"});
  const sim::NetworkDescription description{.file = "test",
                                            .name = "norm",
                                            .source = {},
                                            .symbols = {},
                                            .input_shape = {{"2", 0}, {"10", 0}},
                                            .blocks = {block}};
  const sim::Network network = sim::network_of(description);
  const auto of = [&](std::string_view policy) {
    return sim::step_memory(sim::typed(network, sim::find_precision_policy(policy)),
                            names::parse_spec("sgd"));
  };
  CHECK(of("O2").weights == 80);
  CHECK(of("O2").master_weights == 0);
  CHECK(of("O2").buffers == 80);
  CHECK(of("O3").weights == 40);
  CHECK(of("O3").buffers == 40);
}

TEST_CASE("memory model: an optimizer's state is what the optimizer allocates, however large the parameter") {
  for (const sim::OptimizerRow& row : sim::optimizers()) {
    for (const char* policy : {"fp32", "O3", "fp64"}) {
      const sim::PrecisionPolicy& formats = sim::find_precision_policy(policy);
      sim::OptimizerState state(names::parse_spec(row.name), formats);
      for (const std::uint64_t n : {1, 255, 4095, 4096, 4097, 8191, 8192, 8193, 8448, 100'003, 262'144}) {
        const auto optimizer = row.make({}, formats.update_arithmetic(0, 1));
        optimizer->allocate(0, n);
        INFO(row.name, " ", policy, " ", n);
        CHECK(state.bytes(n) == optimizer->state_bytes());
        CHECK(state.bytes(n) == optimizer->state_bytes());  // and when it is asked again
      }
    }
  }
  CHECK_THROWS_AS(sim::OptimizerState(names::parse_spec("adan"), sim::find_precision_policy("fp32")),
                  std::invalid_argument);
}

TEST_CASE("memory model: the largest batch fits and the next does not") {
  const sim::NetworkDescription description = test::transformer_layers(1, 64, 64, 4);
  for (const sim::Recomputation recomputation : sim::recomputations) {
    for (const char* name : {"fp32", "O1", "O2", "O3"}) {
      const sim::PrecisionPolicy& policy = sim::find_precision_policy(name);
      const auto total_at = [&](std::uint64_t batch) {
        const sim::Network network = sim::network_of(description, {{"batch", batch}});
        return sim::step_memory(sim::typed(network, policy), names::parse_spec("adamw"), recomputation)
            .total();
      };
      const sim::FittingOptions options{.policy = policy,
                                        .optimizer = names::parse_spec("adamw"),
                                        .recomputation = recomputation,
                                        .bytes = 60'000'000};
      const sim::LargestBatch found = sim::largest_batch(description, {{"batch", 3}}, options);
      INFO(name, " ", sim::name_of(recomputation), " ", found.batch);
      CHECK(found.batch > 1);
      CHECK(found.memory.total() == total_at(found.batch));
      CHECK(total_at(found.batch) <= options.bytes);
      CHECK(total_at(found.batch + 1) > options.bytes);
      // Exactly enough is enough.
      sim::FittingOptions exact = options;
      exact.bytes = total_at(5);
      CHECK(sim::largest_batch(description, {}, exact).batch == 5);
    }
  }
  const sim::LargestBatch none = sim::largest_batch(
      description, {},
      {.policy = sim::find_precision_policy("fp32"), .optimizer = names::parse_spec("adamw"), .bytes = 1000});
  CHECK(none.batch == 0);
  CHECK(none.memory.total() > 1000);
}
