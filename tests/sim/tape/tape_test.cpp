#include "sim/tape/tape.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/ops/add.h"
#include "sim/ops/linear.h"
#include "sim/ops/mul.h"
#include "sim/ops/relu.h"
#include "sim/ops/sum.h"
#include "tests/sim/ops/evaluation.h"

using sim::Tensor;
using sim::Variable;

TEST_CASE("tape: every gradient is observed once, whole, from the loss back") {
  // sum(relu(x w^T) + relu(x w^T) w'), so that relu's gradient is that of two branches.
  const sim::PrecisionPolicy& policy = sim::find_precision_policy("fp32");
  const Tensor weights = Tensor::from({2, 2}, std::vector<float>{1, 2, -3, 1});
  sim::Tape tape(policy);
  const Variable x = tape.constant(Tensor::from({1, 2}, std::vector<float>{1, 1}));
  const Variable w = tape.parameter("layer.weight", weights);
  const Variable y = tape.apply(sim::linear, {x, w}, "layer");
  const Variable active = tape.apply(sim::relu, {y});
  const Variable loss =
      tape.apply(sim::sum, {tape.apply(sim::add, {active, tape.apply(sim::mul, {active, active})})});

  std::vector<std::string> order;
  std::vector<std::vector<float>> gradients;
  const sim::SiteGradients sites =
      tape.backward(loss, {.observe = [&](Variable variable, const Tensor& gradient) {
                      order.emplace_back(tape.name_of(variable).operation);
                      gradients.push_back(gradient.to_floats());
                    }});
  CHECK(order == std::vector<std::string>{"sum", "add", "mul", "relu", "linear", "parameter"});
  // y = (3, -2), relu (3, 0): d(a + a^2) = 1 + 2 a.
  CHECK(gradients[3] == std::vector<float>{7, 1});
  CHECK(gradients[4] == std::vector<float>{7, 0});
  CHECK(gradients[5] == std::vector<float>{7, 7, 0, 0});
  CHECK(gradients[5] == sites.gradients[0].to_floats());
  CHECK(gradients[4] == sites.gradients[1].to_floats());
}
