#include "sim/precision/precision_policy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "fp16/half.h"
#include "sim/ops/linear.h"
#include "sim/ops/mean.h"
#include "sim/ops/scale.h"
#include "sim/ops/sum.h"
#include "tests/sim/training_runs.h"

namespace {

using sim::Tensor;

using Roles = std::map<std::string, std::string>;

Roles roles(const std::string& spec) {
  const auto pairs = sim::roles_of(sim::make_precision_policy(spec));
  return {pairs.begin(), pairs.end()};
}

/// What every preset has that says nothing else: everything in FP32.
const Roles everything_fp32{
    {"casts", "none"},
    {"model", "binary32"},
    {"lower_precision", "binary32"},
    {"full_precision", "binary32"},
    {"keep_batchnorm_fp32", "false"},
    {"weights", "binary32"},
    {"unscaled_gradients", "binary32"},
    {"optimizer_state", "binary32"},
    {"update_operations", "binary32"},
    {"operand_activations", "as stored"},
    {"operand_weights", "as stored"},
    {"operand_gradients", "as stored"},
    {"accumulation", "fp32"},
    {"accumulation_order", "k ascending, one chain for each output"},
    {"reductions", "binary32"},
    {"reductions_order",
     "rows in blocks of 16 (binary16: in one), blocks pairwise; a single row as 16 interleaved columns"},
    {"activation_rounding", "nearest_even"},
    {"gradient_rounding", "nearest_even"},
    {"weight_rounding", "nearest_even"},
    {"loss_scaling", "none"}};

Roles with(Roles base, const Roles& changes) {
  for (const auto& [role, value] : changes) base.at(role) = value;
  return base;
}

/// Every role that holds a part of the model or of its update in one format.
Roles in_one_format(const std::string& format) {
  return {{"model", format},           {"lower_precision", format},
          {"weights", format},         {"unscaled_gradients", format},
          {"optimizer_state", format}, {"update_operations", format}};
}

const Roles autocast_bf16{{"casts", "torch_autocast"}, {"lower_precision", "bfloat16"}};

}  // namespace

TEST_CASE("policies: every role of every preset") {
  const std::map<std::string, Roles> presets{
      {"fp32", {}},
      {"fp64", with(with(everything_fp32, in_one_format("binary64")),
                    {{"full_precision", "binary64"}, {"accumulation", "fp64"}, {"reductions", "binary64"}})},
      {"amp", {{"casts", "torch_autocast"}, {"lower_precision", "binary16"}, {"loss_scaling", "dynamic"}}},
      {"fp16", with(with(everything_fp32, in_one_format("binary16")), {{"optimizer_state", "binary32"},
                                                                       {"update_operations", "binary32"},
                                                                       {"accumulation", "fp16_fma"},
                                                                       {"reductions", "binary16"}})},
      {"bf16", autocast_bf16},
      {"fp8", with(with(everything_fp32, autocast_bf16), {{"operand_activations", "e4m3 per tensor"},
                                                          {"operand_weights", "e4m3 per tensor"},
                                                          {"operand_gradients", "e5m2 per tensor"},
                                                          {"loss_scaling", "delayed"}})},
      {"mxfp8", with(with(everything_fp32, autocast_bf16), {{"operand_activations", "mxfp8_e4m3 rceil"},
                                                            {"operand_weights", "mxfp8_e4m3 rceil"},
                                                            {"operand_gradients", "mxfp8_e4m3 rceil"}})},
      {"mxfp4",
       with(with(everything_fp32, autocast_bf16), {{"operand_activations", "mxfp4 rceil"},
                                                   {"operand_weights", "mxfp4 rceil"},
                                                   {"operand_gradients", "mxfp4 rceil, stochastic"}})},
      {"nvfp4", with(with(everything_fp32, autocast_bf16), {{"operand_activations", "nvfp4"},
                                                            {"operand_weights", "nvfp4"},
                                                            {"operand_gradients", "nvfp4, stochastic"}})},
      // Apex's property table (apex/amp/frontend.py): cast_model_type, patch_torch_functions,
      // keep_batchnorm_fp32, master_weights, loss_scale.
      {"O0", {}},  // float32, False, None, False, 1.0
      {"O1",       // None, True, None, None, dynamic
       {{"casts", "apex_o1"}, {"lower_precision", "binary16"}, {"loss_scaling", "apex_amp"}}},
      {"O2",  // float16, False, True, True, dynamic
       {{"model", "binary16"},
        {"lower_precision", "binary16"},
        {"keep_batchnorm_fp32", "true"},
        {"loss_scaling", "apex_amp"}}},
      {"O3", in_one_format("binary16")},  // float16, False, False, False, 1.0
  };
  CHECK(presets.size() == sim::precision_policies().size());
  for (const sim::PrecisionPolicy& policy : sim::precision_policies()) {
    INFO(policy.name);
    CHECK(!policy.description.empty());
    REQUIRE(presets.contains(std::string(policy.name)));
    CHECK(roles(std::string(policy.name)) == with(everything_fp32, presets.at(std::string(policy.name))));
  }
}

TEST_CASE("policies: every override changes its role, and no other") {
  const struct {
    const char* preset;
    const char* override_text;
    Roles changes;
  } rows[]{
      {"fp32", "master_weights=false", {}},  // they are the model's already
      {"O2", "keep_batchnorm_fp32=false", {{"keep_batchnorm_fp32", "false"}}},
      {"O2", "cast_model_type=bfloat16", {{"model", "bfloat16"}, {"lower_precision", "bfloat16"}}},
      {"O2", "cast_model_type=float32", {{"model", "binary32"}, {"lower_precision", "binary32"}}},
      {"O2", "loss_scale=128", {{"loss_scaling", "static:scale=128:skip_nonfinite=0"}}},
      {"O2", "loss_scale=0.5", {{"loss_scaling", "static:scale=0.5:skip_nonfinite=0"}}},
      {"O2", "loss_scale=1", {{"loss_scaling", "none"}}},
      {"O3", "loss_scale=dynamic", {{"loss_scaling", "apex_amp"}}},
      {"fp16", "loss_scale=dynamic", {{"loss_scaling", "dynamic"}}},
      {"fp16", "accumulation=fp16_mul_add", {{"accumulation", "fp16_mul_add"}}},
      {"fp16", "accumulation=fp32", {{"accumulation", "fp32"}}},
      {"amp",
       "accumulation=hopper_fp32",
       {{"accumulation", "hopper_fp32"}, {"accumulation_order", "k ascending, by steps of the tensor core"}}},
      {"O3",
       "accumulation=volta_fp16",
       {{"accumulation", "volta_fp16"}, {"accumulation_order", "k ascending, by steps of the tensor core"}}},
      {"O3", "reductions=binary16", {{"reductions", "binary16"}}},
      {"fp16", "reductions=binary32", {{"reductions", "binary32"}}},
      {"amp", "optimizer_state=binary16", {{"optimizer_state", "binary16"}}},
      {"amp", "optimizer_state=bfloat16", {{"optimizer_state", "bfloat16"}}},
      {"O3", "update_operations=binary32", {{"update_operations", "binary32"}}},
      {"fp16", "optimizer_state=binary16", {{"optimizer_state", "binary16"}}},
      {"fp16", "update_operations=binary16", {{"update_operations", "binary16"}}},
      {"fp16", "activation_rounding=stochastic", {{"activation_rounding", "stochastic"}}},
      {"fp16", "gradient_rounding=toward_zero", {{"gradient_rounding", "toward_zero"}}},
      {"fp16", "weight_rounding=stochastic", {{"weight_rounding", "stochastic"}}},
  };
  for (const auto& [preset, override_text, changes] : rows) {
    INFO(preset, ":", override_text);
    CHECK(roles(std::string(preset) + ":" + override_text) == with(roles(preset), changes));
  }
}

TEST_CASE("policies: without masters the optimizer changes the model's own weights") {
  const Roles o2 = roles("O2");
  // Batch norm is in FP32, and its update too; FP16 weights are updated as fused optimizers do it.
  CHECK(roles("O2:master_weights=false") ==
        with(o2, {{"weights", "binary16"}, {"unscaled_gradients", "binary16"}}));
  CHECK(roles("O2:master_weights=false:keep_batchnorm_fp32=false") ==
        with(with(o2, in_one_format("binary16")), {{"keep_batchnorm_fp32", "false"}}));
  CHECK(roles("O3:master_weights=true") ==
        with(o2, {{"keep_batchnorm_fp32", "false"}, {"loss_scaling", "none"}}));
  CHECK(roles("O3:keep_batchnorm_fp32=true") == with(roles("O3"), {{"keep_batchnorm_fp32", "true"},
                                                                   {"optimizer_state", "binary32"},
                                                                   {"update_operations", "binary32"}}));
  CHECK(roles("O3:keep_batchnorm_fp32=true:optimizer_state=binary16") ==
        with(roles("O3"), {{"keep_batchnorm_fp32", "true"}, {"update_operations", "binary32"}}));
  CHECK(roles("O0:cast_model_type=float16:master_weights=true") ==
        with(o2, {{"keep_batchnorm_fp32", "false"}, {"loss_scaling", "none"}}));
  CHECK(roles("O0:cast_model_type=float16") == roles("O3"));
  CHECK(roles("O3:cast_model_type=bfloat16") == with(roles("O3"), in_one_format("bfloat16")));
  // Apex's O1 takes the one model type that changes nothing.
  CHECK(roles("O1:cast_model_type=float32") == roles("O1"));
  CHECK(roles("amp:cast_model_type=binary32") == roles("amp"));
  // The model's format is chosen before the masters', in whatever order they are written.
  CHECK(roles("O0:master_weights=true:cast_model_type=float16") ==
        roles("O0:cast_model_type=float16:master_weights=true"));
}

TEST_CASE("policies: what is wrong is named, with what is allowed") {
  const std::pair<const char*, const char*> rows[]{
      {"O4",
       "unknown policy 'O4'; did you mean 'O0'? allowed: fp32, fp64, amp, fp16, bf16, fp8, mxfp8, mxfp4, "
       "nvfp4, O0, O1, O2, O3"},
      {"O2:foo=1",
       "policy 'O2': unknown override 'foo'; allowed: cast_model_type, keep_batchnorm_fp32, master_weights, "
       "loss_scale, "
       "accumulation, reductions, optimizer_state, update_operations, activation_rounding, "
       "gradient_rounding, "
       "weight_rounding"},
      {"O2:master_weight=true",
       "policy 'O2': unknown override 'master_weight'; did you mean 'master_weights'? allowed: "
       "cast_model_type, "
       "keep_batchnorm_fp32, master_weights, loss_scale, accumulation, reductions, optimizer_state, "
       "update_operations, activation_rounding, gradient_rounding, weight_rounding"},
      {"O1:cast_model_type=float16",
       "policy 'O1': cast_model_type: 'float16' is not allowed; allowed: binary32 (float32), as the list "
       "apex_o1 casts operations and not the model"},
      {"O1:cast_model_type=fp24",
       "policy 'O1': cast_model_type: unknown format 'fp24'; allowed: binary64, binary32, binary16, "
       "bfloat16"},
      {"O1:keep_batchnorm_fp32=true",
       "policy 'O1': keep_batchnorm_fp32: its operations are cast by a list (apex_o1), which leaves it "
       "nothing to say"},
      {"O1:master_weights=false",
       "policy 'O1': master_weights: its operations are cast by a list (apex_o1), which leaves it nothing "
       "to say"},
      {"amp:master_weights=true",
       "policy 'amp': master_weights: its operations are cast by a list (torch_autocast), which leaves it "
       "nothing to say"},
      {"fp64:master_weights=true",
       "policy 'fp64': master_weights: masters in binary32 would be narrower than a model in binary64"},
      {"O2:master_weights=yes", "policy 'O2': master_weights: 'yes' is not allowed; allowed: true, false"},
      {"O2:keep_batchnorm_fp32=1",
       "policy 'O2': keep_batchnorm_fp32: '1' is not allowed; allowed: true, false"},
      {"O3:keep_batchnorm_fp32=true:update_operations=binary16",
       "policy 'O3': update_operations: 'binary16' is not allowed with keep_batchnorm_fp32; allowed: "
       "binary32, "
       "binary64"},
      {"O2:loss_scale=0", "policy 'O2': loss_scale: '0' is not allowed; allowed: dynamic, a number above 0"},
      {"O2:loss_scale=-8",
       "policy 'O2': loss_scale: '-8' is not allowed; allowed: dynamic, a number above 0"},
      {"O2:loss_scale=inf",
       "policy 'O2': loss_scale: 'inf' is not allowed; allowed: dynamic, a number above 0"},
      {"O2:loss_scale=nan",
       "policy 'O2': loss_scale: 'nan' is not allowed; allowed: dynamic, a number above 0"},
      {"O2:loss_scale=8x",
       "policy 'O2': loss_scale: '8x' is not allowed; allowed: dynamic, a number above 0"},
      {"O2:loss_scale=static",
       "policy 'O2': loss_scale: 'static' is not allowed; allowed: dynamic, a number above 0"},
      {"O2:cast_model_type=float64",
       "policy 'O2': cast_model_type: binary64 is for policy fp64 alone, which has no other"},
      {"fp64:cast_model_type=float32",
       "policy 'fp64': cast_model_type: binary64 is for policy fp64 alone, which has no other"},
      {"amp:reductions=bfloat16",
       "policy 'amp': reductions: 'bfloat16' is not allowed; allowed: binary32, binary16, and of policy fp64 "
       "nothing"},
      {"fp64:reductions=binary32",
       "policy 'fp64': reductions: 'binary32' is not allowed; allowed: binary32, binary16, and of policy "
       "fp64 "
       "nothing"},
      {"fp32:accumulation=fp16_fma",
       "policy 'fp32': accumulation: 'fp16_fma' needs operands in binary16; allowed here: fp32"},
      {"bf16:accumulation=hopper_fp32",
       "policy 'bf16': accumulation: 'hopper_fp32' needs operands in binary16; allowed here: fp32"},
      {"fp64:accumulation=fp32",
       "policy 'fp64': accumulation: 'fp32' needs operands in binary16; allowed here: nothing"},
      {"O2:weight_rounding=up",
       "policy 'O2': weight_rounding: unknown rounding 'up'; allowed: nearest_even, "
       "nearest_away, toward_zero, toward_positive, toward_negative, to_odd, stochastic"},
      {"O2:loss_scale=8:loss_scale=9",
       "'O2:loss_scale=8:loss_scale=9': option 'loss_scale' is given twice; allowed: NAME or "
       "NAME:option=value:option=value"},
  };
  for (const auto& [spec, message] : rows) {
    INFO(spec);
    CHECK_THROWS_WITH_AS(sim::make_precision_policy(spec), message, std::invalid_argument);
  }
  for (const char* spec : {"O2:cast_model_type=e4m3", "O2:reductions=e5m2", "O2:optimizer_state=tf32",
                           "O2:update_operations=e8m0"}) {
    CHECK_THROWS_WITH_AS(sim::make_precision_policy(spec), doctest::Contains("binary16"),
                         std::invalid_argument);
  }
  CHECK_THROWS_WITH_AS(sim::make_precision_policy("fp16:accumulation=fp32_fma"),
                       doctest::Contains("did you mean 'fp16_fma'? allowed: fp32, fp16_fma, fp16_mul_add, "
                                         "volta_fp32, volta_fp16"),
                       std::invalid_argument);
}

TEST_CASE("policies: the update asks the optimizer for what the roles say") {
  const sim::UpdateArithmetic arithmetic =
      sim::make_precision_policy("O3:optimizer_state=binary16:weight_rounding=stochastic")
          .update_arithmetic(7, 2);
  CHECK(arithmetic.operations == fp16::binary16);
  CHECK(arithmetic.state == fp16::binary16);
  CHECK(arithmetic.weight_rounding == fp16::Rounding::stochastic);
  CHECK(arithmetic.seed == 7);
  CHECK(arithmetic.threads == 2);
}

TEST_CASE("policies: steps that FP16 weights swallow move master weights") {
  // 1 + 2^-12 is nearer to 1 than to 1 + 2^-10; 2048 such steps make one half.
  const auto train = [](const char* name) {
    const sim::PrecisionPolicy& policy = sim::find_precision_policy(name);
    Tensor weight = tensor_of({1}, {1}, policy.weights);
    const Tensor gradient = tensor_of({1}, {-0x1p-12f}, policy.unscaled_gradients);
    const auto sgd = sim::make_optimizer("sgd", {{"learning_rate", 1}}, policy.update_arithmetic(0, 1));
    sim::UpdateCounts counts;
    for (int step = 0; step < 2048; ++step) {
      sgd->begin_step();
      counts += sgd->update(0, weight, gradient);
    }
    return std::pair(weight.element(0), counts.swallowed);
  };
  CHECK(train("O2") == std::pair<double, std::uint64_t>(1.5, 0));
  CHECK(train("O3") == std::pair<double, std::uint64_t>(1, 2048));
  CHECK(train("fp16") == std::pair<double, std::uint64_t>(1, 2048));
}

TEST_CASE("policies: a gradient that its scale keeps alive is zero again after O3's unscaling") {
  // 2^-30, far below 2^-25: as 2^-20 it survives the backward pass of S = 2^10.
  sim::ScaledGradients scaled{.sites = {{"w", sim::GradientSite::Kind::weight, {0}}},
                              .values = {.gradients = {}, .scales = {1024}, .rounding = {}}};
  scaled.values.gradients.push_back(tensor_of({3}, {0x1p-20f, 0x1p-14f, 3}, fp16::binary16));
  const auto unscaled = [&](const char* policy) {
    const fp16::Format format = sim::find_precision_policy(policy).unscaled_gradients;
    const sim::Gradients gradients = sim::unscale(scaled, {.format = format});
    CHECK(gradients.parameters[0].format() == format);
    return values_of(gradients.parameters[0]);
  };
  CHECK(unscaled("O2") == std::vector<double>{0x1p-30, 0x1p-24, 3 * 0x1p-10});
  CHECK(unscaled("O3") == std::vector<double>{0, 0x1p-24, 3 * 0x1p-10});
}

TEST_CASE("policies: fp16 adds everything up in binary16, O3 and amp in binary32") {
  std::vector<float> terms(1000);
  const sim::RandomStream random(3, "terms");
  for (std::size_t i = 0; i < terms.size(); ++i) terms[i] = fp16::half(random.normal(i) + 1);
  // Each of the reference's half additions is rounded once; in binary32 nothing much is lost.
  const fp16::half in_halves = interleaved_half_sum(terms);
  double exact = 0;
  for (const float term : terms) exact += term;
  REQUIRE(double{float(in_halves)} != double{float(fp16::half(static_cast<float>(exact)))});

  const auto sum_under = [&](const std::string& spec, const sim::Operation& operation) {
    const sim::PrecisionPolicy policy = sim::make_precision_policy(spec);
    sim::Tape tape(policy);
    const sim::Variable x = tape.constant(tensor_of({terms.size()}, terms, fp16::binary16));
    return tape.value(tape.apply(operation, {x})).element(0);
  };
  for (const char* pure : {"fp16", "O3:reductions=binary16"}) {
    CHECK(sum_under(pure, sim::sum) == float(in_halves));
    CHECK(sum_under(pure, sim::mean) == float(fp16::half(float(in_halves) / 1000)));
  }
  CHECK(sum_under("O3", sim::sum) == float(fp16::half(static_cast<float>(exact))));
  CHECK(sum_under("fp16:reductions=binary32", sim::sum) == float(fp16::half(static_cast<float>(exact))));
  CHECK(sum_under("amp", sim::sum) == doctest::Approx(exact).epsilon(1e-6));
}

TEST_CASE("policies: products add up as the accumulation says, wherever it comes from") {
  // 2048 + 1 + 1: binary16 leaves 2048 at every step, binary32 has 2050, and the exact products of a tensor
  // core are added at once.
  const auto product_under = [](const std::string& spec) {
    const sim::PrecisionPolicy policy = sim::make_precision_policy(spec);
    sim::Tape tape(policy);
    const sim::Variable x = tape.constant(tensor_of({1, 3}, {2048, 1, 1}, policy.model)),
                        w = tape.constant(tensor_of({1, 3}, {1, 1, 1}, policy.model));
    return tape.value(tape.apply(sim::linear, {x, w})).element(0);
  };
  CHECK(product_under("fp16") == 2048);
  CHECK(product_under("fp16:accumulation=fp16_mul_add") == 2048);
  CHECK(product_under("fp16:accumulation=fp32") == 2050);
  CHECK(product_under("amp:accumulation=hopper_fp32") == 2050);
  CHECK(product_under("amp:accumulation=hopper_fp16") == 2050);
  CHECK(product_under("amp:accumulation=fp16_fma") == 2048);
  for (const char* policy : {"amp", "O0", "O1", "O2", "O3", "fp32", "fp64"}) {
    INFO(policy);
    CHECK(product_under(policy) == 2050);
  }
}

TEST_CASE("policies: activations and gradients are rounded as their roles say") {
  // 1 + 3 * 2^-12 lies between 1 and 1 + 2^-10.
  const auto forward_and_backward = [](const std::string& spec) {
    const sim::PrecisionPolicy policy = sim::make_precision_policy(spec);
    const Tensor x = tensor_of({1}, {1 + 0x1p-10f}, fp16::binary16);
    sim::Tape tape(policy, {.seed = 1});
    const double factor = (1 + 3 * 0x1p-12) / (1 + 0x1p-10);
    const sim::Variable y =
        tape.apply(sim::scale, {tape.parameter("x", x)}, {},
                   sim::ScaleOptions{.forward_factor = factor, .backward_factor = 1 + 3 * 0x1p-12});
    const sim::Variable loss = tape.apply(sim::sum, {y});
    return std::pair(tape.value(y).element(0), tape.backward(loss, {}).gradients[0].element(0));
  };
  const double up = 1 + 0x1p-10;
  CHECK(forward_and_backward("O3") == std::pair(up, up));
  CHECK(forward_and_backward("O3:activation_rounding=toward_zero") == std::pair(1.0, up));
  CHECK(forward_and_backward("O3:gradient_rounding=toward_zero") == std::pair(up, 1.0));
}
