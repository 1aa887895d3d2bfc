/// In which format each operation runs under torch.autocast, Apex O1 and policies without a list. The
/// expected classes were read by hand from PyTorch's aten/src/ATen/autocast_mode.h (CUDA) and Apex's
/// apex/amp/lists/{torch,functional,tensor}_overrides.py, which cb65b8e removed (2025-05-08); an operation of
/// ours that is several of theirs (softmax_cross_entropy: log_softmax and nll_loss; attention: bmm or
/// scaled_dot_product_attention; bias: add) has the class of these.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/ops/add.h"
#include "sim/ops/attention_options.h"
#include "sim/ops/binary_cross_entropy.h"
#include "sim/ops/cast.h"
#include "sim/ops/embedding.h"
#include "sim/ops/lstm.h"
#include "sim/ops/matmul.h"
#include "sim/ops/mean_squared_error.h"
#include "sim/ops/registry.h"
#include "sim/ops/relu.h"
#include "sim/ops/softmax.h"
#include "sim/ops/softmax_cross_entropy.h"
#include "sim/ops/sum.h"
#include "sim/tape/tape.h"
#include "sim/trainer/trainer.h"
#include "tests/sim/training_runs.h"

namespace {

using sim::AutocastClass;
using sim::Shape;
using sim::Tensor;
using sim::Variable;
using enum sim::AutocastClass;

struct Expected {
  const char* operation;
  AutocastClass torch_autocast, apex_o1;
};

constexpr Expected table[]{
    // torch: conv2d, matmul, linear, bmm, scaled_dot_product_attention, lstm_cell; Apex: the same functions
    // and the LSTM cells
    {"matmul", lower_precision, lower_precision},
    {"linear", lower_precision, lower_precision},
    {"conv2d", lower_precision, lower_precision},
    {"attention_scores", lower_precision, lower_precision},
    {"attention_context", lower_precision, lower_precision},
    {"lstm", lower_precision, lower_precision},
    // both: exp, log, pow, layer_norm and the losses
    {"exp", full_precision, full_precision},
    {"log", full_precision, full_precision},
    {"pow", full_precision, full_precision},
    {"layer_norm", full_precision, full_precision},
    {"softmax_cross_entropy", full_precision, full_precision},
    {"mean_squared_error", full_precision, full_precision},
    {"mean_absolute_error", full_precision, full_precision},
    {"smooth_l1", full_precision, full_precision},
    {"binary_cross_entropy_with_logits", full_precision, full_precision},
    // torch: an FP32 result unless the caller asks for another; Apex casts the input
    {"softmax", full_precision_output, full_precision},
    {"log_softmax", full_precision_output, full_precision},
    {"sum", full_precision_output, full_precision},
    // var is on Apex's list alone; mean is on it only for torch before 1.1
    {"variance", input_type, full_precision},
    {"mean", input_type, input_type},
    // gelu is on Apex's list alone, among the functions of torch.nn.functional
    {"gelu", input_type, full_precision},
    // torch leaves + and * to its type promotion; Apex patches them
    {"add", input_type, promote},
    {"mul", input_type, promote},
    {"bias", input_type, promote},
    {"binary_cross_entropy", banned, banned},
    // on neither list
    {"cast", input_type, input_type},
    {"embedding", input_type, input_type},
    {"relu", input_type, input_type},
    {"tanh", input_type, input_type},
    {"sigmoid", input_type, input_type},
    {"scale", input_type, input_type},
    {"dropout", input_type, input_type},
    {"batch_norm", input_type, input_type},
    {"max_pool2d", input_type, input_type},
    {"average_pool2d", input_type, input_type},
    {"global_average_pool", input_type, input_type},
    {"channels_last", input_type, input_type},
};

const Expected& expected_of(std::string_view operation) {
  for (const Expected& row : table) {
    if (row.operation == operation) return row;
  }
  FAIL("no row for operation ", operation);
  return table[0];
}

struct Case {
  std::vector<Shape> inputs;
  sim::OperationOptions options = {};
};

Case case_of(const std::string& operation) {
  static const std::map<std::string, Case> cases{
      {"matmul", {{{2, 3}, {3, 2}}}},
      {"linear", {{{2, 3}, {4, 3}, {4}}}},
      {"conv2d", {{{1, 2, 4, 4}, {3, 2, 3, 3}, {3}}}},
      {"attention_scores", {{{4, 2}, {4, 2}}, sim::AttentionOptions{.context = 2}}},
      {"attention_context", {{{2, 2, 2}, {4, 2}}, sim::AttentionOptions{.context = 2}}},
      {"lstm", {{{4, 3}, {8, 3}, {8, 2}, {8}}, sim::LstmLayerOptions{.context = 2}}},
      {"embedding", {{{3, 2}}, sim::EmbeddingOptions{.labels = {0, 2}}}},
      {"layer_norm", {{{2, 3}, {3}, {3}}}},
      {"batch_norm", {{{2, 3, 2, 2}, {3}, {3}}}},
      {"bias", {{{2, 3}, {3}}}},
      {"add", {{{2, 3}, {2, 3}}}},
      {"mul", {{{2, 3}, {2, 3}}}},
      {"max_pool2d", {{{1, 2, 4, 4}}}},
      {"average_pool2d", {{{1, 2, 4, 4}}}},
      {"global_average_pool", {{{1, 2, 4, 4}}}},
      {"channels_last", {{{1, 2, 4, 4}}}},
      {"softmax_cross_entropy", {{{2, 3}}, sim::SoftmaxCrossEntropyOptions{.labels = {0, 2}}}},
      {"mean_squared_error", {{{2, 3}, {2, 3}}}},
      {"mean_absolute_error", {{{2, 3}, {2, 3}}}},
      {"smooth_l1", {{{2, 3}, {2, 3}}}},
      {"binary_cross_entropy", {{{2, 3}, {2, 3}}}},
      {"binary_cross_entropy_with_logits", {{{2, 3}, {2, 3}}}},
  };
  const auto found = cases.find(operation);
  return found == cases.end() ? Case{{{2, 3}}} : found->second;
}

fp16::Format widest(const std::vector<fp16::Format>& formats) {
  fp16::Format result = formats.front();
  for (const fp16::Format format : formats) {
    if (format != result) result = fp16::binary32;  // whichever two of binary16, bfloat16, binary32 meet
  }
  return result;
}

bool is_loss(std::string_view operation) {
  constexpr std::string_view losses[]{"softmax_cross_entropy", "mean_squared_error",
                                      "mean_absolute_error",   "smooth_l1",
                                      "binary_cross_entropy",  "binary_cross_entropy_with_logits"};
  return std::ranges::find(losses, operation) != std::end(losses);
}

/// The format of an output by the tables; none where the operation is refused. `low` is the policy's format
/// of 16 bits.
std::optional<fp16::Format> expected_format(sim::CastList list, fp16::Format low,
                                            const sim::Operation& operation,
                                            const std::vector<fp16::Format>& inputs) {
  const Expected& row = expected_of(operation.name);
  if (operation.name == "batch_norm") return inputs.front();  // FP16 in, FP16 out, FP32 parameters or not
  if (list == sim::CastList::none) return is_loss(operation.name) ? fp16::binary32 : widest(inputs);
  switch (list == sim::CastList::apex_o1 ? row.apex_o1 : row.torch_autocast) {
    case lower_precision:
      return low;
    case full_precision:
    case full_precision_output:
      return fp16::binary32;
    case banned:  // torch refuses it in any autocast region, Apex for inputs of 16 bits
      if (list == sim::CastList::torch_autocast || widest(inputs) == low) return std::nullopt;
      return fp16::binary32;
    case promote:
    case input_type:
      break;
  }
  return widest(inputs);
}

/// The output's format of the operation on inputs of these formats; none if refused.
std::optional<fp16::Format> format_of(const sim::PrecisionPolicy& policy, const sim::Operation& operation,
                                      const std::vector<fp16::Format>& formats) {
  const Case the_case = case_of(std::string(operation.name));
  sim::Tape tape(policy);
  std::vector<Variable> inputs;
  for (std::size_t i = 0; i < the_case.inputs.size(); ++i) {
    const std::vector<float> values(sim::element_count(the_case.inputs[i]), 0.5f);
    inputs.push_back(tape.constant(tensor_of(the_case.inputs[i], values, formats[i])));
  }
  try {
    return tape.value(tape.apply(operation, inputs, {}, the_case.options)).format();
  } catch (const std::invalid_argument& error) {
    INFO(error.what());
    CHECK(operation.name == "binary_cross_entropy");
    return std::nullopt;
  }
}

}  // namespace

TEST_CASE("cast lists: every operation has the class of its counterpart in torch.autocast and Apex O1") {
  for (const sim::Operation* operation : sim::operations()) {
    const Expected& expected = expected_of(operation->name);
    INFO(operation->name);
    REQUIRE(operation->casts);
    CHECK(operation->casts->torch_autocast == expected.torch_autocast);
    CHECK(operation->casts->apex_o1 == expected.apex_o1);
  }
  CHECK(std::size(table) == sim::operations().size());
}

TEST_CASE("cast lists: the format of every operation's output, for FP16, FP32 and mixed inputs") {
  const struct {
    const char* policy;
    sim::CastList list;
    fp16::Format low;
  } rows[]{
      {"amp", sim::CastList::torch_autocast, fp16::binary16},
      {"bf16", sim::CastList::torch_autocast, fp16::bfloat16},
      {"fp8", sim::CastList::torch_autocast, fp16::bfloat16},
      {"O1", sim::CastList::apex_o1, fp16::binary16},
      {"O0", sim::CastList::none, fp16::binary16},
      {"O2", sim::CastList::none, fp16::binary16},
      {"O3", sim::CastList::none, fp16::binary16},
      {"fp16", sim::CastList::none, fp16::binary16},
      {"fp32", sim::CastList::none, fp16::binary16},
  };
  for (const auto& [name, list, low] : rows) {
    const sim::PrecisionPolicy& policy = sim::find_precision_policy(name);
    for (const sim::Operation* operation : sim::operations()) {
      if (operation == &sim::cast) continue;  // its options say
      const std::size_t count = case_of(std::string(operation->name)).inputs.size();
      std::vector<fp16::Format> mixed(count, fp16::binary32), turned(count, low);
      mixed.front() = low;
      turned.front() = fp16::binary32;
      for (const std::vector<fp16::Format>& inputs :
           {std::vector(count, low), std::vector(count, fp16::binary32), mixed, turned}) {
        INFO(name, " ", operation->name, " of ", fp16::name_of(inputs.front()), " and ",
             fp16::name_of(inputs.back()));
        CHECK(format_of(policy, *operation, inputs) == expected_format(list, low, *operation, inputs));
      }
    }
  }
}

TEST_CASE("cast lists: binary16 and bfloat16 meet in binary32") {
  for (const char* policy : {"amp", "bf16", "O1", "O2"}) {
    CHECK(format_of(sim::find_precision_policy(policy), sim::add, {fp16::binary16, fp16::bfloat16}) ==
          fp16::binary32);
  }
}

TEST_CASE("cast lists: linear maps compute with what the cast leaves of their inputs") {
  // 1 + 2^-12 is 1 in binary16 and in bfloat16; the product in binary32 would keep it.
  const Tensor x = tensor_of({1, 1}, {1 + 0x1p-12f}), w = tensor_of({1, 1}, {1});
  for (const auto& [policy, expected] :
       {std::pair{"amp", 1.0}, {"bf16", 1.0}, {"O1", 1.0}, {"fp32", 1 + 0x1p-12}, {"O0", 1 + 0x1p-12}}) {
    sim::Tape tape(sim::find_precision_policy(policy));
    const Variable y = tape.apply(sim::matmul, {tape.constant(x), tape.constant(w)});
    INFO(policy);
    CHECK(tape.value(y).element(0) == expected);
  }
}

TEST_CASE("cast lists: full-precision results keep what FP16 would round away") {
  const Tensor x = tensor_of({4096}, std::vector<float>(4096, 1.0f), fp16::binary16);
  const Tensor small = tensor_of({1, 2}, {-12, 8}, fp16::binary16);
  for (const char* policy : {"amp", "O1"}) {
    sim::Tape tape(sim::find_precision_policy(policy));
    CHECK(tape.value(tape.apply(sim::sum, {tape.constant(x)})).element(0) == 4096);
    const Variable p = tape.apply(sim::softmax, {tape.constant(small)});
    CHECK(tape.value(p).element(0) == doctest::Approx(std::exp(-20.0)).epsilon(1e-6));  // 2^-28.9
  }
  sim::Tape tape(sim::find_precision_policy("O3"));
  CHECK(tape.value(tape.apply(sim::softmax, {tape.constant(small)})).element(0) == 0);
}

TEST_CASE("cast lists: binary cross entropy is refused with the name of what is safe") {
  const auto apply = [](const char* policy, fp16::Format format) {
    sim::Tape tape(sim::find_precision_policy(policy));
    const Variable p = tape.constant(tensor_of({1, 2}, {0.5f, 0.25f}, format));
    const Variable t = tape.constant(tensor_of({1, 2}, {0, 1}, format));
    return tape.value(tape.apply(sim::binary_cross_entropy, {p, t})).element(0);
  };
  const double loss = (std::log(2) + std::log(4)) / 2;
  for (const auto& [policy, format] :
       {std::pair{"amp", fp16::binary16}, {"amp", fp16::binary32}, {"O1", fp16::binary16}}) {
    INFO(policy);
    CHECK_THROWS_WITH_AS(apply(policy, format),
                         ("operation binary_cross_entropy: not safe in binary16 under policy " +
                          std::string(policy) + "; use binary_cross_entropy_with_logits")
                             .c_str(),
                         std::invalid_argument);
  }
  CHECK_THROWS_WITH_AS(apply("bf16", fp16::bfloat16), doctest::Contains("not safe in bfloat16"),
                       std::invalid_argument);
  CHECK(apply("O1", fp16::binary32) == doctest::Approx(loss));
  CHECK(apply("O3", fp16::binary16) == doctest::Approx(loss));
  CHECK(apply("fp32", fp16::binary32) == doctest::Approx(loss));
}

namespace {

/// The gradient of w in a = x1 w, b = x2 w, loss = sum(a + b): x1 + x2, by way of what w and the sum of the
/// gradients are rounded to. `in_between` stands between w and the products.
double gradient_of_shared(const char* policy, bool in_between) {
  const Tensor w = tensor_of({1, 1}, {1});
  sim::Tape tape(sim::find_precision_policy(policy));
  Variable shared = tape.parameter("w", w);
  if (in_between) shared = tape.apply(sim::relu, {shared});
  const auto product = [&](float x) {
    return tape.apply(sim::matmul, {tape.constant(tensor_of({1, 1}, {x})), shared});
  };
  const Variable a = product(2048), b = product(1);
  return tape.backward(tape.apply(sim::sum, {tape.apply(sim::add, {a, b})}), {}).gradients[0].element(0);
}

}  // namespace

TEST_CASE("cast lists: a parameter is cast once, so its gradients add up in FP16, other values are not") {
  for (const char* policy : {"amp", "O1"}) {
    INFO(policy);
    CHECK(gradient_of_shared(policy, false) == 2048);  // 2049 lies between 2048 and 2050, nearest-even
    CHECK(gradient_of_shared(policy, true) == 2049);   // a cast for each use, their gradients add up in FP32
  }
  CHECK(gradient_of_shared("bf16", false) == 2048);
  CHECK(gradient_of_shared("fp32", false) == 2049);
}

TEST_CASE("cast lists: parameters that a loss and a linear map share keep an FP32 gradient") {
  const Tensor w = tensor_of({1, 1}, {1 + 0x1p-12f});
  sim::Tape tape(sim::find_precision_policy("amp"));
  const Variable p = tape.parameter("w", w);
  const Variable y = tape.apply(sim::matmul, {p, p});
  const Variable loss = tape.apply(sim::mean_squared_error, {y, p});  // y = 1 by FP16, p as it is
  const sim::SiteGradients gradients = tape.backward(loss, {});
  CHECK(gradients.gradients[0].format() == fp16::binary32);
  // d = y - p = -2^-12; through each factor of y 2 d, -2^-11, exact in FP16; through p itself -2 d.
  CHECK(tape.value(loss).element(0) == 0x1p-24);
  CHECK(gradients.gradients[0].element(0) == -2 * 0x1p-11 + 0x1p-11);
}

TEST_CASE("cast lists: batch norm's parameters are FP32 where the policy keeps them, FP16 else") {
  const std::unique_ptr<sim::Model> model = training_runs::make_model("cnn:channels=2");
  const sim::Dataset& data = training_runs::data_of(sim::DataKind::images);
  const sim::ModelState state = sim::ModelState::initial(*model, 1);
  const std::pair<const char*, fp16::Format> cases[]{
      {"O2", fp16::binary32},   {"O2:keep_batchnorm_fp32=false", fp16::binary16},
      {"O3", fp16::binary16},   {"O3:keep_batchnorm_fp32=true", fp16::binary32},
      {"fp16", fp16::binary16},
  };
  for (const auto& [spec, expected] : cases) {
    const sim::PrecisionPolicy policy = sim::make_precision_policy(spec);
    const sim::RecordedStep step = sim::record_step(*model, state, data.test_batch(0, 4), policy);
    const sim::SiteGradients gradients = step.tape.backward(step.forward.loss, {});
    std::size_t norms = 0;
    for (std::size_t i = 0; i < state.specs.size(); ++i) {
      const bool of_norm = state.specs[i].name.find(".norm.") != std::string::npos;
      norms += of_norm;
      INFO(spec, " ", state.specs[i].name);
      CHECK(state.specs[i].of_batch_norm == of_norm);
      CHECK(gradients.gradients[i].format() == (of_norm ? expected : fp16::binary16));
    }
    CHECK(norms == 8);
    for (std::size_t i = state.specs.size(); i < step.tape.sites().size(); ++i)
      CHECK(gradients.gradients[i].format() == fp16::binary16);  // all activations, batch norm's included
  }
}
