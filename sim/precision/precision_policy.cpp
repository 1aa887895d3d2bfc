#include "sim/precision/precision_policy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "fp16/format_names.h"
#include "fp16/formats.h"
#include "fp16/names.h"
#include "fp16/rounding_names.h"

namespace sim {
namespace {

using fp16::Accumulation;

/// Every role of a model in one format but for what a row changes.
constexpr PrecisionPolicy uniform(std::string_view name, std::string_view description, fp16::Format format) {
  return {.name = name,
          .description = description,
          .model = format,
          .lower_precision = format,
          .weights = format,
          .unscaled_gradients = format,
          .optimizer_state = format,
          .update_operations = format};
}

constexpr PrecisionPolicy fp64 = [] {
  PrecisionPolicy policy =
      uniform("fp64", "everything in FP64: what FP32 itself is held against", fp16::binary64);
  policy.full_precision = fp16::binary64;
  policy.products = {.chain = Accumulation::fp64_fma_chain};
  policy.reductions = fp16::binary64;
  return policy;
}();

constexpr PrecisionPolicy fp16_everywhere = [] {
  PrecisionPolicy policy =
      uniform("fp16", "pure FP16: weights, activations, gradients and every sum", fp16::binary16);
  // Adam's second moments would underflow in FP16 at once: what is to be seen is what the numbers do to the
  // network.
  policy.optimizer_state = policy.update_operations = fp16::binary32;
  policy.products = {.chain = Accumulation::fp16_fma_chain};
  policy.reductions = fp16::binary16;
  return policy;
}();

constexpr PrecisionPolicy apex_o2{
    .name = "O2",
    .description = "Apex O2: FP16 model but for batch norm, FP32 master weights",
    .model = fp16::binary16,
    .lower_precision = fp16::binary16,
    .keep_batchnorm_fp32 = true,
    .loss_scaling = "apex_amp"};

/// Everything as under bf16 but for the operands of linear and conv2d.
constexpr PrecisionPolicy narrow(std::string_view name, std::string_view description,
                                 const OperandFormats& operands, std::string_view loss_scaling = "none") {
  return {.name = name,
          .description = description,
          .casts = CastList::torch_autocast,
          .lower_precision = fp16::bfloat16,
          .operands = operands,
          .loss_scaling = loss_scaling};
}

constexpr OperandFormat per_tensor(fp16::Format element) {
  return {.kind = OperandFormat::Kind::per_tensor, .element = element};
}

/// Blocks lie along the sum of each product. NVIDIA's recipe for NVFP4 (arXiv:2509.25149) has, besides,
/// weights in blocks of 16 x 16 and a random Hadamard transform before the weight gradient; neither is done
/// here. Scales that are powers of two follow NVIDIA's rule: nothing saturates, so that stochastic rounding
/// has no bias, which by the rule of the MX specification the largest elements would have.
constexpr OperandFormats in_blocks(const fp16::BlockFormat& block, bool stochastic_gradients) {
  const OperandFormat nearest{
      .kind = OperandFormat::Kind::per_block, .block = &block, .scale_rule = fp16::ScaleRule::rceil};
  OperandFormat gradients = nearest;
  gradients.stochastic = stochastic_gradients;
  return {.activations = nearest, .weights = nearest, .gradients = gradients};
}

constexpr std::array policies{
    PrecisionPolicy{.name = "fp32", .description = "everything in FP32: the ground truth"},
    fp64,
    PrecisionPolicy{.name = "amp",
                    .description = "torch.autocast with FP16: FP32 weights, FP16 linear maps, FP32 losses",
                    .casts = CastList::torch_autocast,
                    .lower_precision = fp16::binary16,
                    .loss_scaling = "dynamic"},
    fp16_everywhere,
    PrecisionPolicy{.name = "bf16",
                    .description = "torch.autocast with bfloat16: FP32 weights, bfloat16 linear maps",
                    .casts = CastList::torch_autocast,
                    .lower_precision = fp16::bfloat16},
    narrow("fp8", "bf16, but products of linear maps in FP8: E4M3 forward, E5M2 gradients, scales per tensor",
           {.activations = per_tensor(fp16::e4m3),
            .weights = per_tensor(fp16::e4m3),
            .gradients = per_tensor(fp16::e5m2)},
           "delayed"),
    narrow("mxfp8", "bf16, but products of linear maps in MXFP8: E4M3 in blocks of 32",
           in_blocks(fp16::mxfp8_e4m3, false)),
    narrow("mxfp4", "bf16, but products of linear maps in MXFP4, gradients rounded stochastically",
           in_blocks(fp16::mxfp4, true)),
    narrow(
        "nvfp4",
        "bf16, but products of linear maps in NVFP4, gradients rounded stochastically; no Hadamard transform",
        in_blocks(fp16::nvfp4, true)),
    PrecisionPolicy{.name = "O0", .description = "Apex O0: everything in FP32"},
    PrecisionPolicy{.name = "O1",
                    .description = "Apex O1: FP32 weights, functions cast by Apex's lists",
                    .casts = CastList::apex_o1,
                    .lower_precision = fp16::binary16,
                    .loss_scaling = "apex_amp"},
    apex_o2,
    uniform("O3", "Apex O3: FP16 model without master weights, FP32 accumulation", fp16::binary16),
};
static_assert(names::has_unique_names(policies));

constexpr std::array tensor_formats{
    fp16::NamedFormat{"binary64", fp16::binary64}, fp16::NamedFormat{"binary32", fp16::binary32},
    fp16::NamedFormat{"binary16", fp16::binary16}, fp16::NamedFormat{"bfloat16", fp16::bfloat16}};

std::string name_of(fp16::Rounding direction) {
  return std::string(
      std::ranges::find(fp16::named_roundings, direction, &fp16::NamedRounding::rounding)->name);
}
std::string name_of(CastList casts) {
  switch (casts) {
    case CastList::none:
      return "none";
    case CastList::torch_autocast:
      return "torch_autocast";
    case CastList::apex_o1:
      return "apex_o1";
  }
  return {};
}

fp16::Format format_named(std::string_view name) {
  return names::find_by_name(tensor_formats, "format", fp16::name_in_table(name)).format;
}
fp16::Rounding rounding_named(std::string_view name) {
  return names::find_by_name(fp16::named_roundings, "rounding", name).rounding;
}

bool truth_of(std::string_view text) {
  if (text == "true" || text == "false") return text == "true";
  throw std::invalid_argument("'" + std::string(text) + "' is not allowed; allowed: true, false");
}

void require_no_list(const PrecisionPolicy& policy) {
  if (policy.casts == CastList::none) return;
  throw std::invalid_argument("its operations are cast by a list (" + name_of(policy.casts) +
                              "), which leaves it nothing to say");
}

void cast_model(PrecisionPolicy& policy, std::string_view text) {
  if (policy.casts != CastList::none) {
    if (format_named(text) == policy.model) return;
    throw std::invalid_argument("'" + std::string(text) +
                                "' is not allowed; allowed: binary32 (float32), as the list " +
                                name_of(policy.casts) + " casts operations and not the model");
  }
  const bool masters = policy.has_master_weights();
  const fp16::Format model = format_named(text);
  if ((model == fp16::binary64) != (policy.model == fp16::binary64))
    throw std::invalid_argument("binary64 is for policy fp64 alone, which has no other");
  if (model == policy.model) return;
  policy.model = policy.lower_precision = model;
  if (masters) return;
  policy.weights = policy.unscaled_gradients = policy.optimizer_state = policy.update_operations = model;
}

void keep_masters(PrecisionPolicy& policy, std::string_view text) {
  require_no_list(policy);
  if (truth_of(text) && policy.model == fp16::binary64)
    throw std::invalid_argument("masters in binary32 would be narrower than a model in binary64");
  const fp16::Format weights = truth_of(text) ? fp16::binary32 : policy.model;
  if (weights == policy.weights) return;
  policy.weights = policy.unscaled_gradients = weights;
  policy.optimizer_state = policy.update_operations = policy.weights;
}

void set_loss_scale(PrecisionPolicy& policy, std::string_view text) {
  if (text == "dynamic") {
    policy.loss_scaling = policy.name.starts_with('O') ? "apex_amp" : "dynamic";
    return;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value > 0) || !std::isfinite(value)) {
    throw std::invalid_argument("'" + std::string(text) +
                                "' is not allowed; allowed: dynamic, a number above 0");
  }
  policy.loss_scaling = value == 1 ? "none" : "static";
  policy.static_scale = value;
}

void set_reductions(PrecisionPolicy& policy, std::string_view text) {
  const fp16::Format format = format_named(text);
  if (policy.model == fp16::binary64 || (format != fp16::binary32 && format != fp16::binary16))
    throw std::invalid_argument("'" + std::string(text) +
                                "' is not allowed; allowed: binary32, binary16, and of policy fp64 nothing");
  policy.reductions = format;
}

void set_accumulation(PrecisionPolicy& policy, std::string_view text) {
  const ProductAccumulation products = find_product_accumulation(text);
  if (policy.model == fp16::binary64)
    throw std::invalid_argument("'" + std::string(text) +
                                "' needs operands in binary16; allowed here: nothing");
  policy.products = products;
}

struct Override {
  std::string_view name;
  void (*apply)(PrecisionPolicy& policy, std::string_view value);
};

constexpr std::array overrides{
    Override{"cast_model_type", cast_model},
    Override{"keep_batchnorm_fp32",
             [](PrecisionPolicy& policy, std::string_view text) {
               require_no_list(policy);
               policy.keep_batchnorm_fp32 = truth_of(text);
             }},
    Override{"master_weights", keep_masters},
    Override{"loss_scale", set_loss_scale},
    Override{"accumulation", set_accumulation},
    Override{"reductions", set_reductions},
    Override{"optimizer_state", [](PrecisionPolicy& policy,
                                   std::string_view text) { policy.optimizer_state = format_named(text); }},
    Override{"update_operations",
             [](PrecisionPolicy& policy, std::string_view text) {
               policy.update_operations = format_named(text);
             }},
    Override{"activation_rounding",
             [](PrecisionPolicy& policy, std::string_view text) {
               policy.activation_rounding = rounding_named(text);
             }},
    Override{"gradient_rounding",
             [](PrecisionPolicy& policy, std::string_view text) {
               policy.gradient_rounding = rounding_named(text);
             }},
    Override{"weight_rounding", [](PrecisionPolicy& policy,
                                   std::string_view text) { policy.weight_rounding = rounding_named(text); }},
};
static_assert(names::has_unique_names(overrides));

}  // namespace

UpdateArithmetic PrecisionPolicy::update_arithmetic(std::uint64_t seed, int threads) const {
  return {.operations = update_operations,
          .state = optimizer_state,
          .weight_rounding = weight_rounding,
          .seed = seed,
          .threads = threads};
}

std::string PrecisionPolicy::scaler_spec() const {
  if (loss_scaling != "static") return std::string(loss_scaling);
  const bool apex = name.starts_with('O');  // whose static scalers never look for overflow
  return "static:scale=" + names::number_text(static_scale) + (apex ? ":skip_nonfinite=0" : "");
}

std::span<const PrecisionPolicy> precision_policies() {
  return policies;
}

const PrecisionPolicy& find_precision_policy(std::string_view name) {
  return names::find_by_name(precision_policies(), "policy", name);
}

PrecisionPolicy make_precision_policy(std::string_view text) {
  const names::Spec spec = names::parse_spec(text);
  PrecisionPolicy policy = find_precision_policy(spec.name);
  const std::vector<std::string> known = names::names_of(overrides);
  for (const auto& [name, value] : spec.options) {
    if (std::ranges::find(known, name) == known.end())
      throw std::invalid_argument("policy '" + spec.name +
                                  "': " + names::unknown_name_message("override", name, known));
  }
  for (const Override& row : overrides) {  // in this order, whatever the user's
    const auto given = spec.options.find(row.name);
    if (given == spec.options.end()) continue;
    try {
      row.apply(policy, given->second);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("policy '" + spec.name + "': " + std::string(row.name) + ": " +
                                  error.what());
    }
  }
  if ((policy.products.tensor_core || policy.products.ends_in_binary16()) &&
      policy.lower_precision != fp16::binary16) {
    throw std::invalid_argument("policy '" + spec.name + "': accumulation: '" +
                                sim::name_of(policy.products) +
                                "' needs operands in binary16; allowed here: fp32");
  }
  // Batch norm in binary32 beside an optimizer of 16 bits: update as fused optimizers do, which compute in
  // binary32 whatever a parameter is stored in.
  if (policy.keep_batchnorm_fp32 && !fp16::contains(policy.update_operations, fp16::binary32)) {
    if (spec.options.count("update_operations") > 0)
      throw std::invalid_argument("policy '" + spec.name + "': update_operations: '" +
                                  std::string(fp16::name_of(policy.update_operations)) +
                                  "' is not allowed with keep_batchnorm_fp32; allowed: binary32, binary64");
    policy.update_operations = fp16::binary32;
    if (spec.options.count("optimizer_state") == 0) policy.optimizer_state = fp16::binary32;
  }
  return policy;
}

std::vector<std::pair<std::string, std::string>> roles_of(const PrecisionPolicy& policy) {
  const auto format = [](fp16::Format f) { return std::string(fp16::name_of(f)); };
  return {
      {"casts", name_of(policy.casts)},
      {"model", format(policy.model)},
      {"lower_precision", format(policy.lower_precision)},
      {"full_precision", format(policy.full_precision)},
      {"keep_batchnorm_fp32", policy.keep_batchnorm_fp32 ? "true" : "false"},
      {"weights", format(policy.weights)},
      {"unscaled_gradients", format(policy.unscaled_gradients)},
      {"optimizer_state", format(policy.optimizer_state)},
      {"update_operations", format(policy.update_operations)},
      {"operand_activations", sim::name_of(policy.operands.activations)},
      {"operand_weights", sim::name_of(policy.operands.weights)},
      {"operand_gradients", sim::name_of(policy.operands.gradients)},
      {"accumulation", sim::name_of(policy.products)},
      {"accumulation_order", policy.products.tensor_core ? "k ascending, by steps of the tensor core"
                                                         : "k ascending, one chain for each output"},
      {"reductions", format(policy.reductions)},
      {"reductions_order",
       "rows in blocks of 16 (binary16: in one), blocks pairwise; a single row as 16 interleaved columns"},
      {"activation_rounding", name_of(policy.activation_rounding)},
      {"gradient_rounding", name_of(policy.gradient_rounding)},
      {"weight_rounding", name_of(policy.weight_rounding)},
      {"loss_scaling", policy.scaler_spec()}};
}

}  // namespace sim
