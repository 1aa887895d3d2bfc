#include "sim/sizing/cost_model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/sim/sizing/transformer_layers.h"

namespace {

std::vector<sim::Kernel> named(const std::vector<sim::Kernel>& kernels, std::string_view name,
                               sim::Phase phase) {
  std::vector<sim::Kernel> found;
  std::ranges::copy_if(kernels, std::back_inserter(found), [&](const sim::Kernel& kernel) {
    return kernel.name == name && kernel.phase == phase;
  });
  return found;
}

sim::NetworkDescription described(std::vector<std::string> input,
                                  std::vector<sim::DescribedOperator> operators) {
  sim::NetworkDescription description{
      .file = "test",
      .name = "small",
      .source = {},
      .symbols = {},
      .input_shape = {},
      .blocks = {{.name = "b", .repeat = {"1", 0}, .operators = std::move(operators)}}};
  for (std::string& extent : input) description.input_shape.push_back({std::move(extent), 0});
  return description;
}

}  // namespace

TEST_CASE(
    "cost model: a layer of a transformer takes 24bsh^2 + 4bs^2h FLOP forward and twice that backward") {
  const std::uint64_t b = 2, s = 32, h = 48, a = 4;
  const sim::Network network = sim::network_of(test::transformer_layers(b, s, h, a));
  for (const char* policy : {"fp32", "amp", "O2"}) {
    std::uint64_t forward = 0, backward = 0;
    for (const sim::Kernel& kernel :
         sim::kernels_of(sim::typed(network, sim::find_precision_policy(policy)))) {
      if (kernel.name != "product" || network.operators[kernel.op].repetition != 1) continue;
      CHECK(kernel.operator_class == sim::OperatorClass::tensor_contraction);
      (kernel.phase == sim::Phase::forward ? forward : backward) += kernel.flop;
    }
    CHECK(forward == 24 * b * s * h * h + 4 * b * s * s * h);
    CHECK(backward == 2 * forward);
  }
}

TEST_CASE("cost model: kernels of a linear map on the network's input, which needs no gradient") {
  const sim::Network network = sim::network_of(
      described({"6", "10"}, {{.name = "map", .operation = "linear", .sizes = {{"features", {"4", 0}}}}}));
  const std::vector<sim::Kernel> kernels =
      sim::kernels_of(sim::typed(network, sim::find_precision_policy("fp32")));
  REQUIRE(kernels.size() == 4);
  CHECK(kernels[0].flop == 2 * 6 * 10 * 4);
  CHECK(kernels[0].bytes == 4 * (60 + 40 + 24));
  CHECK(kernels[1].name == "bias");
  CHECK(kernels[1].flop == 24);
  CHECK(kernels[1].bytes == 4 * (24 + 24 + 4));
  CHECK(kernels[2].name == "product");
  CHECK(kernels[2].phase == sim::Phase::backward);
  CHECK(kernels[2].flop == 2 * 6 * 10 * 4);
  CHECK(kernels[3].bytes == 4 * (24 + 4));
}

TEST_CASE("cost model: autocast casts each weight once and its gradient back, activations for each reader") {
  sim::DescribedOperator left{.name = "left",
                              .operation = "linear",
                              .inputs = {"hidden"},
                              .sizes = {{"features", {"3", 0}}, {"bias", {"0", 0}}}};
  sim::DescribedOperator right = left, hidden = left;
  right.name = "right";
  hidden.name = "hidden";
  hidden.inputs = {"x"};
  const sim::Network network = sim::network_of(
      described({"5", "3"}, {hidden,
                             {.name = "norm", .operation = "layer_norm"},
                             left,
                             right,
                             {.name = "sum", .operation = "add", .inputs = {"left", "right"}}}));
  const std::vector<sim::Kernel> kernels =
      sim::kernels_of(sim::typed(network, sim::find_precision_policy("amp")));
  CHECK(named(kernels, "cast of weight", sim::Phase::forward).size() == 3);
  CHECK(named(kernels, "cast of weight", sim::Phase::backward).size() == 3);
  CHECK(named(kernels, "cast of weight", sim::Phase::forward).front().bytes == 9 * (4 + 2));
  // The input for `hidden` and what that gives for the norm; the others read it as it is.
  CHECK(named(kernels, "cast", sim::Phase::forward).size() == 2);
  CHECK(named(kernels, "cast", sim::Phase::backward).size() == 1);  // the input has no gradient
  // `hidden` has three readers.
  const std::vector<sim::Kernel> sums = named(kernels, "sum of gradients", sim::Phase::backward);
  REQUIRE(sums.size() == 2);
  CHECK(sums[0].flop == 15);
  CHECK(sums[0].bytes == 3 * 15 * 2);
}

TEST_CASE("cost model: time is the longer of arithmetic and memory, at the rate of the operands' format") {
  const sim::Card& v100 = sim::find_card("v100");
  const sim::Kernel busy{.name = "product",
                         .operator_class = sim::OperatorClass::tensor_contraction,
                         .operands = fp16::binary16,
                         .flop = 125'000'000'000,
                         .bytes = 900};
  CHECK(v100.time_s(busy) == doctest::Approx(1e-3).epsilon(1e-12));
  CHECK(!v100.is_bound_by_memory(busy));
  sim::Kernel idle = busy;
  idle.flop = 1;
  idle.bytes = 900'000'000;
  CHECK(v100.time_s(idle) == doctest::Approx(1e-3).epsilon(1e-12));
  CHECK(v100.is_bound_by_memory(idle));
  sim::Kernel vector = busy;
  vector.operator_class = sim::OperatorClass::element_wise;
  CHECK(v100.flop_per_s(vector) == 15.7e12);
  // What has no unit of its own runs in that of the next wider format.
  CHECK(v100.contraction_flop_per_s(fp16::e4m3) == 125e12);
  CHECK(v100.contraction_flop_per_s(fp16::bfloat16) == 15.7e12);
  const sim::Card& h100 = sim::find_card("h100");
  CHECK(h100.contraction_flop_per_s(fp16::e4m3) == 1978.9e12);
  CHECK(h100.contraction_flop_per_s(fp16::bfloat16) == 989.4e12);
  for (const sim::Card& card : sim::cards()) {
    for (const fp16::Format format :
         {fp16::e4m3, fp16::binary16, fp16::bfloat16, fp16::binary32, fp16::binary64})
      CHECK(card.contraction_flop_per_s(format) > 0);
  }
  CHECK_THROWS_WITH(sim::find_card("v10"), doctest::Contains("unknown card 'v10'; did you mean 'v100'?"));
}

TEST_CASE("cost model: under fp8 linear maps multiply FP8, attention what it is given") {
  const sim::Network network = sim::network_of(test::transformer_layers(1, 8, 16, 2));
  for (const sim::Kernel& kernel : sim::kernels_of(sim::typed(network, sim::find_precision_policy("fp8")))) {
    if (kernel.name != "product") continue;
    const bool is_linear = network.operators[kernel.op].operation->name == "linear";
    CHECK(kernel.operands == (is_linear ? fp16::e4m3 : fp16::bfloat16));
  }
}
