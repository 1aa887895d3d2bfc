#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/op_precision/findings.h"
#include "experiments/op_precision/lists.h"
#include "experiments/op_precision/operands.h"
#include "experiments/op_precision/replay.h"
#include "experiments/training/training_setup.h"
#include "sim/ops/bias.h"
#include "sim/ops/binary_cross_entropy.h"
#include "sim/ops/binary_cross_entropy_with_logits.h"
#include "sim/ops/cast.h"
#include "sim/ops/exp.h"
#include "sim/ops/linear.h"
#include "sim/ops/log.h"
#include "sim/ops/matmul.h"
#include "sim/ops/mean.h"
#include "sim/ops/mean_squared_error.h"
#include "sim/ops/pow.h"
#include "sim/ops/registry.h"
#include "sim/ops/relu.h"
#include "sim/ops/sigmoid.h"
#include "sim/ops/softmax_cross_entropy.h"
#include "sim/ops/sum.h"
#include "sim/ops/variance.h"
#include "sim/trainer/model_state.h"

namespace {

using namespace experiments::op_precision;
using sim::Tensor;

Tensor vector_of(const std::vector<float>& values) {
  return Tensor::from({values.size()}, values);
}

/// An operation of one activation.
Operands unary(const sim::Operation& operation, const std::vector<float>& x,
               const std::vector<float>& output_gradient) {
  Operands operands{.operation = &operation,
                    .inputs = {},
                    .is_parameter = {false},
                    .wants_gradient = {true},
                    .output_gradient = vector_of(output_gradient)};
  operands.inputs.push_back(vector_of(x));
  return operands;
}

Loss fp32_sums(const Operands& operands) {
  return measure(operands).loss(Reductions::fp32);
}

/// Findings made up: an operation's worst row has lost so much, whatever its sums.
OperationFindings found(const sim::Operation& operation, const Loss& loss) {
  Row row{.operation = &operation, .model = "mlp", .step = 3, .operands = "recorded", .evaluations = 1};
  row.worst.ranges.operand = 2;
  for (const Reductions reductions : all_reductions) row.worst.loss(reductions) = loss;
  return {.operation = &operation,
          .rows = {row},
          .headroom = Headroom{.octaves = 5, .operand = 64, .failure = Failure::overflow, .passing = 63}};
}

}  // namespace

TEST_CASE("op_precision: the criterion, at its edges") {
  const Criterion criterion;
  CHECK(criterion.failure_of({.fraction_flushed = 0.001, .gradient_error_u = 8}) == Failure::none);
  CHECK(criterion.failure_of({.fraction_flushed = 0.0011}) == Failure::flushed);
  CHECK(criterion.failure_of({.gradient_error_u = 8.1}) == Failure::gradient_error);
  CHECK(criterion.failure_of({.gradient_error_u = std::numeric_limits<double>::quiet_NaN()}) ==
        Failure::gradient_error);
  CHECK(criterion.failure_of({.fraction_overflow = 1e-9, .fraction_flushed = 1}) == Failure::overflow);
  CHECK(criterion.failure_of({.forward_error_u = 1e6}) == Failure::none);
  CHECK(criterion.times(2).failure_of({.fraction_flushed = 0.002, .gradient_error_u = 16}) == Failure::none);
  CHECK(criterion.times(0.5).failure_of({.gradient_error_u = 5}) == Failure::gradient_error);
}

TEST_CASE("op_precision: rounding once costs what it costs by hand") {
  // 3^2 is exact; (1 + 2^-10)^2 = 1 + 2^-9 + 2^-20 loses 2^-20. Its gradient 2 x dy is exact.
  const double x = 1 + 0x1p-10;
  const Loss loss = fp32_sums(unary(sim::pow, {3, static_cast<float>(x)}, {1, 1}));
  CHECK(loss.forward_error_u ==
        doctest::Approx(0x1p-20 / std::hypot(9, x * x) / unit_roundoff).epsilon(1e-12));
  CHECK(loss.gradient_error_u == 0);
  CHECK(loss.fraction_overflow == 0);
  CHECK(loss.fraction_flushed == 0);
}

TEST_CASE("op_precision: squares overflow from 256 on, exponentials from 11.09") {
  CHECK(fp32_sums(unary(sim::pow, {255.75f, 1}, {1, 1})).fraction_overflow == 0);
  CHECK(fp32_sums(unary(sim::pow, {256, 1}, {1, 1})).fraction_overflow == 0.5);
  CHECK(fp32_sums(unary(sim::exp, {11.086f, 1}, {1, 1})).fraction_overflow == 0);
  CHECK(fp32_sums(unary(sim::exp, {11.1f, 1}, {1, 1})).fraction_overflow == 0.5);
}

TEST_CASE("op_precision: what is flushed is the operation's own doing") {
  // One of four squares is at most 2^-25; a fifth is zero in the truth.
  CHECK(fp32_sums(unary(sim::pow, {1, 0x1p-12f, 0x1p-13f, 2, 0}, {1, 1, 1, 1, 1})).fraction_flushed == 0.25);
  // The largest gradient becomes 2^14, so that 2^-40 is flushed when it comes in.
  const Loss incoming = fp32_sums(unary(sim::relu, {1, 1}, {1, 0x1p-40f}));
  CHECK(incoming.fraction_incoming_flushed == 0.5);
  CHECK(incoming.fraction_flushed == 0);
}

TEST_CASE("op_precision: the logarithm of a flushed probability overflows") {
  // In FP64 both are finite; as FP16 the second operand is 0, whose logarithm is infinite in the truth of the
  // rounded operands too.
  CHECK(fp32_sums(unary(sim::log, {0.5f, 0x1p-20f}, {1, 0})).fraction_overflow == 0);
  CHECK(fp32_sums(unary(sim::log, {0.5f, 0x1p-26f}, {1, 0})).fraction_overflow > 0);
}

TEST_CASE("op_precision: sums of ones stop in FP16 and overflow in the output") {
  constexpr std::size_t many = 65536;
  const std::vector<float> ones(many, 1.0f);
  const Measured mean = measure(unary(sim::mean, ones, {1}));
  CHECK(mean.loss(Reductions::fp32).forward_error_u == 0);
  // 16 partial sums stop at 2048 of 4096 terms; the gradient does not depend on them.
  CHECK(mean.loss(Reductions::fp16).forward_error_u == doctest::Approx(0.5 / unit_roundoff));
  CHECK(mean.loss(Reductions::fp16).gradient_error_u == 0);
  CHECK(fp32_sums(unary(sim::sum, ones, {1})).fraction_overflow == 1);
  CHECK(fp32_sums(unary(sim::sum, std::vector<float>(65504, 1.0f), {1})).fraction_overflow == 0);
}

TEST_CASE("op_precision: a gradient that is rounding noise is left out") {
  constexpr std::size_t rows = 255;
  Operands operands{.operation = &sim::bias,
                    .inputs = {},
                    .is_parameter = {false, true},
                    .wants_gradient = {true, true},
                    .output_gradient = Tensor({rows, 1}, fp16::binary32)};
  operands.inputs.push_back(Tensor::from({rows, 1}, std::vector<float>(rows, 1)));
  operands.inputs.push_back(vector_of({1}));
  // Every three add up to almost nothing, but not what rounding to FP16 makes of them.
  for (std::size_t i = 0; i < rows; i += 3) {
    float* const three = operands.output_gradient.elements<float>().data() + i;
    three[0] = 1 + static_cast<float>(i) * 0x1.357p-10f;
    three[1] = 1 + static_cast<float>(i) * 0x1.9bdp-11f;
    three[2] = -(three[0] + three[1]) * (1 - 0x1p-20f);
  }
  const Measured noise = measure(operands);
  CHECK(noise.operand_rounding_u < 1);
  CHECK(noise.loss(Reductions::fp16).gradient_error_u == 0);  // of x alone, which is what comes in
  for (float& value : operands.output_gradient.elements<float>()) value = std::fabs(value);
  const Measured sum = measure(operands);
  CHECK(sum.loss(Reductions::fp16).gradient_error_u > 0);
  CHECK(sum.loss(Reductions::fp32).gradient_error_u <= 1);
}

TEST_CASE("op_precision: headroom ends where hand computation has it end") {
  const auto headroom = [](const sim::Operation& operation, const std::vector<float>& x) {
    return headroom_of(unary(operation, x, std::vector<float>(x.size(), 1)), nullptr, Reductions::fp32);
  };
  const Headroom square = headroom(sim::pow, {2, -1});
  CHECK(square.failure == Failure::overflow);
  CHECK(square.operand == doctest::Approx(std::sqrt(65520.0)).epsilon(std::exp2(1.0 / 32) - 1));
  CHECK(square.octaves == doctest::Approx(std::log2(square.operand / 2)));
  const Headroom exponential = headroom(sim::exp, {1, 0});
  CHECK(exponential.operand == doctest::Approx(std::log(65520.0)).epsilon(std::exp2(1.0 / 32) - 1));
  // The border is between two operands that were tried, and neither is it.
  CHECK(exponential.passing < std::log(65520.0));
  CHECK(exponential.operand > std::log(65520.0));
  CHECK(exponential.operand <= exponential.passing * std::exp2(1.0 / 32) * (1 + 1e-6));
  const Headroom relu = headroom(sim::relu, {2, 4});
  CHECK(relu.failure == Failure::none);
  CHECK(relu.octaves == doctest::Approx(std::log2(65504.0 / 4)));
  const Headroom none = headroom(sim::pow, {1, 0x1p-14f});
  CHECK(none.octaves == 0);
  CHECK(none.failure == Failure::flushed);
}

TEST_CASE("op_precision: what fails already has no headroom") {
  const auto failed = found(sim::sigmoid, {.fraction_flushed = 0.0015}).headroom_if_failed(Reductions::fp32);
  REQUIRE(failed);
  CHECK(failed->octaves == 0);
  CHECK(failed->operand == 2);
  CHECK(failed->border() == "2");
  const Headroom between{.octaves = 1, .operand = 11.2871, .failure = Failure::overflow, .passing = 11.0452};
  CHECK(between.border() == "11.05 and 11.29");
  CHECK(failed->failure == Failure::flushed);
  CHECK_FALSE(found(sim::exp, {}).headroom_if_failed(Reductions::fp32));
}

TEST_CASE("op_precision: recorded operands reproduce the tape's values") {
  const Tensor weight = Tensor::from({2, 3}, std::vector<float>{1, 2, 3, -1, 0, 1});
  sim::Tape tape(sim::find_precision_policy("fp32"));
  const sim::Variable x = tape.constant(Tensor::from({2, 3}, std::vector<float>{1, 0, 2, 3, -1, 0.5f}));
  const sim::Variable product = tape.apply(sim::linear, {x, tape.parameter("weight", weight)});
  const sim::Variable activated = tape.apply(sim::relu, {product});
  const sim::Variable loss = tape.apply(sim::mean, {activated});
  const std::vector<Operands> recorded = recorded_operands(tape, loss);
  REQUIRE(recorded.size() == 3);
  CHECK(recorded[0].operation == &sim::linear);
  CHECK(recorded[0].is_parameter == std::vector<bool>{false, true});
  CHECK(recorded[0].wants_gradient == std::vector<bool>{false, true});
  CHECK(evaluated(recorded[0]).to_floats() == tape.value(product).to_floats());
  CHECK(recorded[0].output_gradient.to_floats() == std::vector<float>{0.25f, 0.25f, 0.25f, 0});
  CHECK(recorded[2].operation == &sim::mean);
  CHECK(recorded[2].output_gradient.to_floats() == std::vector<float>{1});
  const Operands doubled = with_activations_times(recorded[0], 2);
  CHECK(doubled.inputs[0].to_floats() == std::vector<float>{2, 0, 4, 6, -2, 1});
  CHECK(doubled.inputs[1].to_floats() == weight.to_floats());
}

TEST_CASE("op_precision: stand-ins are what they are named for") {
  const auto row_of = [](const sim::Operation& operation) {
    return *std::ranges::find(stand_ins(), &operation, &StandIn::operation);
  };
  Operands squared = unary(sim::mean_squared_error, {0.25f, 0.75f}, {1});
  squared.inputs.push_back(vector_of({0.5f, 0.5f}));
  squared.is_parameter.push_back(false);
  squared.wants_gradient.push_back(false);
  CHECK(row_of(sim::sum).make(squared, 2).inputs[0].to_floats() == std::vector<float>{0.5f, 0.5f});
  const float three = 3;  // logit of 0.75 is log 3
  const Operands logits = row_of(sim::binary_cross_entropy_with_logits).make(squared, 1);
  CHECK(logits.inputs[0].to_floats()[1] == doctest::Approx(std::log(three)));
  const Operands probabilities = row_of(sim::binary_cross_entropy).make(squared, 2);
  CHECK(probabilities.inputs[0].to_floats()[1] == doctest::Approx(0.9));  // 9 to 1
  CHECK(probabilities.inputs[1].to_floats() == std::vector<float>{0.5f, 0.5f});

  Operands entropy = unary(sim::softmax_cross_entropy, {0, 0}, {1});
  entropy.inputs[0] = Tensor::from({2, 2}, std::vector<float>{0, std::log(three), 1, 1});
  entropy.options = sim::SoftmaxCrossEntropyOptions{.labels = {1, 0}};
  const Operands log = row_of(sim::log).make(entropy, 1);
  CHECK(log.inputs[0].to_floats()[1] == doctest::Approx(0.75));
  CHECK(log.output_gradient.to_floats() == std::vector<float>{0, -0.5f, -0.5f, 0});

  Operands linear = unary(sim::linear, {1, 2}, {1, 1, 1});
  linear.inputs[0] = Tensor::from({1, 2}, std::vector<float>{1, 2});
  linear.inputs.push_back(Tensor::from({3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6}));
  linear.inputs.push_back(vector_of({7, 8, 9}));
  linear.is_parameter = linear.wants_gradient = {false, true, true};
  linear.output_gradient = Tensor::from({1, 3}, std::vector<float>{1, 1, 1});
  CHECK(evaluated(row_of(sim::matmul).make(linear, 1)).to_floats() == std::vector<float>{5, 11, 17});
  CHECK(evaluated(row_of(sim::bias).make(linear, 1)).to_floats() == evaluated(linear).to_floats());
}

TEST_CASE("op_precision: every operation of the registry has operands or a reason to have none") {
  std::set<const sim::Operation*> covered;
  for (const std::string& model : Options().models) {
    experiments::TrainingOptions training{.model = model, .batch = 2, .steps = 1, .context = 4};
    const experiments::TrainingSetup setup(training);
    sim::Trainer trainer = setup.trainer({});
    const sim::RecordedStep step = sim::record_step(setup.model(), trainer.state(), trainer.next_batch(),
                                                    sim::find_precision_policy("fp32"));
    for (const Operands& operands : recorded_operands(step.tape, step.forward.loss)) {
      covered.insert(operands.operation);
      for (const StandIn& row : stand_ins()) {
        if (row.recorded == operands.operation && row.model == model) covered.insert(row.operation);
      }
    }
  }
  for (const sim::Operation* operation : sim::operations()) {
    INFO(operation->name);
    CHECK(covered.contains(operation) == reason_to_leave_out(*operation).empty());
    CHECK(std::ranges::count(stand_ins(), operation, &StandIn::operation) <= 1);
  }
}

TEST_CASE("op_precision: lists compare as they should") {
  Findings findings{.operations = {}, .reductions = Reductions::fp32};
  findings.operations.push_back(found(sim::exp, {}));
  findings.operations.push_back(found(sim::sigmoid, {.fraction_flushed = 0.0015}));
  findings.operations.push_back(found(sim::linear, {.gradient_error_u = 5}));
  findings.operations.push_back({.operation = &sim::cast, .rows = {}});
  findings.operations.push_back(found(sim::variance, {.fraction_overflow = 1}));
  const std::vector<ListEntry> lists = derive_lists(findings);
  REQUIRE(lists.size() == 5);
  const ListEntry &sigmoid = lists[0], &variance = lists[1], &linear = lists[2], &exp = lists[3],
                  &cast = lists[4];
  CHECK(&sigmoid.operation() == &sim::sigmoid);
  CHECK(sigmoid.ours == Placement::fp32);
  CHECK(sigmoid.torch == Agreement::laxer);
  CHECK(sigmoid.at_double == Placement::input);
  CHECK(sigmoid.hangs_on_thresholds());
  CHECK(sigmoid.reason ==
        "0.15 % of its values are flushed, with a gradient error of 0 u (mlp, step 3, "
        "operands up to 2)");
  CHECK(variance.torch == Agreement::laxer);
  CHECK(variance.apex == Agreement::agrees);
  CHECK(!variance.hangs_on_thresholds());
  CHECK(linear.ours == Placement::fp16);
  CHECK(linear.at_half == Placement::fp32);
  CHECK(!linear.is_disputed());
  CHECK(exp.ours == Placement::input);
  CHECK(exp.torch == Agreement::stricter);
  CHECK(exp.reason ==
        "gradient error at most 0 u, 0 % flushed (operands up to 2); overflow only from operands "
        "between 63 and 64 on, 5.0 octaves up");
  CHECK(cast.ours == Placement::unmeasured);
  CHECK(!cast.is_disputed());
}

TEST_CASE("op_precision: sums are fp32 or fp16") {
  CHECK(reductions_from_option("fp16") == Reductions::fp16);
  CHECK_THROWS_WITH_AS(reductions_from_option("fp8"),
                       "--reductions: 'fp8' is not allowed; allowed: fp32, fp16", std::invalid_argument);
  CHECK(early_step({.steps = 5}) == 1);
  CHECK(early_step({.steps = 100}) == 10);
}
