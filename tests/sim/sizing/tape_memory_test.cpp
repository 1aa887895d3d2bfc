#include "sim/sizing/tape_memory.h"

#include <doctest/doctest.h>

#include "sim/precision/precision_policy.h"
#include "sim/sizing/network_description.h"

namespace {

/// batch 3: linear 5 -> 4, relu, linear 4 -> 2, cross entropy.
sim::Network two_layers() {
  const auto linear = [](std::string name, std::string features) {
    return sim::DescribedOperator{
        .name = std::move(name), .operation = "linear", .sizes = {{"features", {std::move(features), 0}}}};
  };
  return sim::network_of(
      {.file = "test",
       .name = "two layers",
       .source = {},
       .symbols = {},
       .input_shape = {{"3", 0}, {"5", 0}},
       .blocks = {{.name = "b",
                   .repeat = {"1", 0},
                   .operators = {linear("hidden", "4"),
                                 {.name = "relu", .operation = "relu"},
                                 linear("output", "2"),
                                 {.name = "loss", .operation = "softmax_cross_entropy"}}}}});
}

}  // namespace

TEST_CASE(
    "tape memory: every value and what losses save, and gradients of parameters twice and of layers' "
    "outputs") {
  const sim::Network network = two_layers();
  const sim::TapeMemory memory = sim::tape_memory(sim::typed(network, sim::find_precision_policy("fp32")));
  // Input 15, hidden 12, relu 12, output 6, loss 1; probabilities 6.
  CHECK(memory.activations == 4 * (15 + 12 + 12 + 6 + 1 + 6));
  // 20 + 4 + 8 + 2 parameters, scaled and unscaled; outputs of 12 and 6.
  CHECK(memory.gradients == 4 * (2 * 34 + 12 + 6));
}

TEST_CASE("tape memory: casts are values too, and unscaled gradients as wide as the policy has them") {
  const sim::Network network = two_layers();
  const sim::TapeMemory amp = sim::tape_memory(sim::typed(network, sim::find_precision_policy("amp")));
  // FP32: input, loss, probabilities, the loss's logits. FP16: casts of input and weights, hidden, relu,
  // output.
  CHECK(amp.activations == 4 * (15 + 1 + 6 + 6) + 2 * (15 + 34 + 12 + 12 + 6));
  CHECK(amp.gradients == 4 * 2 * 34 + 2 * (12 + 6));
  const sim::TapeMemory o2 = sim::tape_memory(sim::typed(network, sim::find_precision_policy("O2")));
  CHECK(o2.gradients == (2 + 4) * 34 + 2 * (12 + 6));
}
