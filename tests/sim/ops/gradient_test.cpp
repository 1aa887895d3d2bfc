/// Every registered operation: its backward against central differences in binary64, its formats under mixed
/// precision.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/random.h"
#include "sim/tape.h"

namespace {

using sim::Shape;
using sim::Tensor;
using sim::Variable;

constexpr sim::PrecisionPolicy binary64_policy{.name = "binary64",
                                               .description = "everything in binary64",
                                               .weights = fp16::binary64,
                                               .lower_precision = fp16::binary64,
                                               .full_precision = fp16::binary64,
                                               .accumulation = fp16::Accumulation::fp64_fma_chain};

struct Case {
  std::vector<Shape> inputs;
  sim::OperationOptions options = {};
};

/// A new operation needs a row here; the test fails for a registered one without.
const std::map<std::string, std::vector<Case>>& cases() {
  static const std::map<std::string, std::vector<Case>> rows{
      {"cast", {{{{3, 4}}, {.format = fp16::binary64}}}},
      {"matmul", {{{{3, 5}, {5, 4}}}}},
      {"bias", {{{{3, 5}, {5}}}}},
      {"linear", {{{{4, 6}, {3, 6}, {3}}}}},
      {"conv2d",
       {{{{2, 3, 6, 5}, {4, 3, 3, 3}, {4}}, {.padding = 1}},
        {{{2, 2, 7, 7}, {3, 2, 3, 3}, {3}}, {.stride = 2}},
        {{{1, 1, 5, 5}, {2, 1, 2, 2}, {2}}, {.stride = 3, .padding = 2}}}},
      {"relu", {{{{4, 7}}}}},
      {"sigmoid", {{{{4, 7}}}}},
      {"max_pool2d", {{{{2, 3, 5, 7}}, {.window = 2}}}},
      {"softmax_cross_entropy", {{{{4, 5}}, {.labels = {1, 4, 0, 2}}}}},
      {"mean_squared_error", {{{{4, 5}, {4, 5}}}}},
  };
  return rows;
}

/// Values away from 0 (relu's kink) and from each other (the maximum of a pool): distinct multiples of 0.037.
Tensor distinct_values(const Shape& shape, std::uint64_t seed) {
  const sim::RandomStream random(seed, "gradient check");
  const std::size_t size = sim::element_count(shape);
  const std::vector<std::uint32_t> order = sim::permutation(random, static_cast<std::uint32_t>(size));
  Tensor tensor(shape, fp16::binary64);
  for (std::size_t i = 0; i < size; ++i) {
    tensor.elements<double>()[i] =
        0.037 * (static_cast<double>(order[i]) - static_cast<double>(size) / 2 + 0.3);
    if (size > 60) tensor.elements<double>()[i] *= 60 / static_cast<double>(size);
  }
  return tensor;
}

struct Network {
  const sim::Operation& operation;
  const Case& the_case;
  std::vector<Tensor> values;

  /// The operation, and a squared error to a fixed target on top where its output is no scalar.
  Variable record(sim::Tape& tape) const {
    std::vector<Variable> inputs;
    for (std::size_t i = 0; i < values.size(); ++i)
      inputs.push_back(tape.parameter(std::to_string(i), values[i]));
    const Variable output = tape.apply(operation, inputs, {}, the_case.options);
    if (tape.value(output).size() == 1) return output;
    return tape.apply(sim::mean_squared_error,
                      {output, tape.constant(distinct_values(tape.value(output).shape(), 99))});
  }
  double loss() const {
    sim::Tape tape(binary64_policy);
    const Variable loss = record(tape);
    return tape.value(loss).element(0);
  }
};

void check_gradients(const sim::Operation& operation, const Case& the_case) {
  Network network{.operation = operation, .the_case = the_case, .values = {}};
  for (std::size_t i = 0; i < the_case.inputs.size(); ++i) {
    network.values.push_back(distinct_values(the_case.inputs[i], i));
  }
  sim::Tape tape(binary64_policy);
  const Variable loss = network.record(tape);
  const sim::SiteGradients gradients = tape.backward(loss, {});
  // Central differences with h = 2^-17: truncation h^2/6 |f'''| with third derivatives below 10^2, 1e-9, and
  // the rounding of two losses of order 10, 2 * 10 * 2^-53 / (2 h) times the tens of operations behind each,
  // 1e-8.
  constexpr double h = 0x1p-17, tolerance = 2e-8;
  for (std::size_t input = 0; input < network.values.size(); ++input) {
    REQUIRE(gradients.gradients[input].format() == fp16::binary64);
    for (std::size_t i = 0; i < network.values[input].size(); ++i) {
      double& x = network.values[input].elements<double>()[i];
      const double kept = x;
      x = kept + h;
      const double above = network.loss();
      x = kept - h;
      const double below = network.loss();
      x = kept;
      INFO(operation.name, " input ", input, " element ", i);
      REQUIRE(std::abs(gradients.gradients[input].element(i) - (above - below) / (2 * h)) <= tolerance);
    }
  }
}

}  // namespace

TEST_CASE("operations: backward equals central differences in binary64") {
  for (const sim::Operation* operation : sim::operations()) {
    INFO(operation->name);
    REQUIRE(cases().contains(std::string(operation->name)));
    for (const Case& the_case : cases().at(std::string(operation->name)))
      check_gradients(*operation, the_case);
  }
}

TEST_CASE("operations: under amp each runs in the format of its class") {
  const sim::PrecisionPolicy& amp = sim::find_precision_policy("amp");
  for (const sim::Operation* operation : sim::operations()) {
    if (operation == &sim::cast) continue;
    const Case& the_case = cases().at(std::string(operation->name)).front();
    std::vector<Tensor> weights;
    for (const Shape& shape : the_case.inputs) {
      Tensor& weight = weights.emplace_back(shape, fp16::binary32);
      sim::copy_rounded({&weight}, distinct_values(shape, 1));
    }
    sim::Tape tape(amp);
    std::vector<Variable> inputs;
    for (const Tensor& weight : weights)
      inputs.push_back(tape.parameter(std::to_string(inputs.size()), weight));
    const Variable output = tape.apply(*operation, inputs, {}, the_case.options);
    const bool lower = operation->autocast == sim::AutocastClass::lower_precision;
    INFO(operation->name);
    CHECK(tape.value(output).format() == (lower ? fp16::binary16 : fp16::binary32));
    if (lower) CHECK(tape.value(output).size_bytes() == 2 * tape.value(output).size());
  }
}

TEST_CASE("operations: names are unique") {
  std::vector<std::string_view> names;
  for (const sim::Operation* operation : sim::operations()) names.push_back(operation->name);
  std::ranges::sort(names);
  CHECK(std::ranges::adjacent_find(names) == names.end());
}
