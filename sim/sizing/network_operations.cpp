#include "sim/sizing/network_operations.h"

#include <stdexcept>
#include <string>

#include "fp16/names.h"
#include "sim/ops/add.h"
#include "sim/ops/attention_context.h"
#include "sim/ops/attention_scores.h"
#include "sim/ops/batch_norm.h"
#include "sim/ops/cast.h"
#include "sim/ops/conv2d.h"
#include "sim/ops/dropout.h"
#include "sim/ops/embedding.h"
#include "sim/ops/gelu.h"
#include "sim/ops/global_average_pool.h"
#include "sim/ops/layer_norm.h"
#include "sim/ops/linear.h"
#include "sim/ops/max_pool2d.h"
#include "sim/ops/mul.h"
#include "sim/ops/relu.h"
#include "sim/ops/sigmoid.h"
#include "sim/ops/softmax.h"
#include "sim/ops/softmax_cross_entropy.h"
#include "sim/ops/tanh.h"

namespace sim {
namespace {

using Rank = std::size_t;

[[noreturn]] void reject(const OperatorShape& s, const std::string& allowed) {
  std::string found = to_string(s.inputs.front());
  for (const Shape& input : std::span(s.inputs).subspan(1)) found += " and " + to_string(input);
  throw std::invalid_argument("input " + found + "; allowed: " + allowed);
}

void require_rank(const OperatorShape& s, Rank rank, const char* meaning) {
  if (s.inputs[0].size() != rank) reject(s, meaning);
}

Shape same_shape(const OperatorShape& s) {
  for (const Shape& input : s.inputs) {
    if (input != s.inputs[0]) reject(s, "two of the same shape");
  }
  return s.inputs[0];
}

Shape with_last(const OperatorShape& s, std::uint64_t size) {
  Shape shape = s.inputs[0];
  shape.back() = size;
  return shape;
}

/// Positions of a window along a side.
std::size_t windows_along(const OperatorShape& s, std::size_t side) {
  const std::size_t padded = side + 2 * s.sizes.padding;
  if (padded < s.sizes.window) reject(s, "sides of at least " + std::to_string(s.sizes.window));
  return (padded - s.sizes.window) / s.sizes.stride + 1;
}

Shape windowed(const OperatorShape& s, std::uint64_t channels) {
  require_rank(s, 4, "batch x channels x height x width");
  const Shape& x = s.inputs[0];
  return {x[0], channels, windows_along(s, x[2]), windows_along(s, x[3])};
}

Shape pooled(const OperatorShape& s) {
  require_rank(s, 4, "batch x channels x height x width");
  return windowed(s, s.inputs[0][1]);
}

Shape scores_shape(const OperatorShape& s) {
  const Shape &query = s.inputs[0], &key = s.inputs[1];
  if (query.size() != 3 || key.size() != 3 || query[0] != key[0] || query[2] != key[2])
    reject(s, "two of batch x tokens x features");
  if (query[2] % s.sizes.heads != 0)
    reject(s, "features divided by heads = " + std::to_string(s.sizes.heads));
  return {query[0], s.sizes.heads, query[1], key[1]};
}

Shape context_shape(const OperatorShape& s) {
  const Shape &weights = s.inputs[0], &value = s.inputs[1];
  if (weights.size() != 4 || value.size() != 3 || weights[0] != value[0] || weights[3] != value[1])
    reject(s, "batch x heads x tokens x tokens and batch x tokens x features");
  return {weights[0], weights[2], value[2]};
}

Shape embedded(const OperatorShape& s) {
  Shape shape = s.inputs[0];
  shape.push_back(s.sizes.features);
  return shape;
}

Shape without_positions(const OperatorShape& s) {
  require_rank(s, 3, "batch x tokens x features");
  return {s.inputs[0][0], s.inputs[0][2]};
}

Shape pooled_globally(const OperatorShape& s) {
  require_rank(s, 4, "batch x channels x height x width");
  return {s.inputs[0][0], s.inputs[0][1]};
}

std::vector<Shape> no_parameters(const OperatorShape&) {
  return {};
}

std::vector<Shape> with_bias(const OperatorShape& s, Shape weight) {
  std::vector<Shape> shapes{weight};
  if (s.sizes.bias != 0) shapes.push_back({weight.front()});
  return shapes;
}

/// Gain and bias.
std::vector<Shape> two_of(std::size_t size) {
  return {{size}, {size}};
}

std::uint64_t nothing(const OperatorShape&) {
  return 0;
}

template <std::uint64_t factor>
std::uint64_t per_input(const OperatorShape& s) {
  return factor * element_count(s.inputs[0]);
}

template <std::uint64_t factor>
std::uint64_t per_output(const OperatorShape& s) {
  return factor * element_count(s.output);
}

std::uint64_t comparisons_of_windows(const OperatorShape& s) {
  return element_count(s.output) * s.sizes.window * s.sizes.window;
}

constexpr NetworkOperation element_wise(std::string_view name, const Operation& operation,
                                        NetworkOperation::Count forward, NetworkOperation::Count backward) {
  return {.name = name,
          .operator_class = OperatorClass::element_wise,
          .operation = &operation,
          .output = same_shape,
          .parameters = no_parameters,
          .saved_elements = nothing,
          .mask_bytes = nothing,
          .product_terms = nothing,
          .forward_flop = forward,
          .backward_flop = backward};
}

constexpr NetworkOperation keeping_input(NetworkOperation row) {
  row.keeps_inputs = true;
  return row;
}

constexpr NetworkOperation keeping_output(NetworkOperation row) {
  row.keeps_output = true;
  return row;
}

constexpr NetworkOperation contraction(std::string_view name, const Operation& operation) {
  NetworkOperation row = keeping_input(element_wise(name, operation, nothing, nothing));
  row.operator_class = OperatorClass::tensor_contraction;
  return row;
}

constexpr NetworkOperation linear_row = [] {
  NetworkOperation row = contraction("linear", linear);
  row.required = {"features"};
  row.optional = {"bias"};
  row.output = [](const OperatorShape& s) { return with_last(s, s.sizes.features); };
  row.parameters = [](const OperatorShape& s) {
    return with_bias(s, {s.sizes.features, s.inputs[0].back()});
  };
  row.product_terms = [](const OperatorShape& s) -> std::uint64_t { return s.inputs[0].back(); };
  return row;
}();

constexpr NetworkOperation conv2d_row = [] {
  NetworkOperation row = contraction("conv2d", conv2d);
  row.required = {"channels", "window"};
  row.optional = {"stride", "padding", "bias"};
  row.output = [](const OperatorShape& s) { return windowed(s, s.sizes.channels); };
  row.parameters = [](const OperatorShape& s) {
    return with_bias(s, {s.sizes.channels, s.inputs[0][1], s.sizes.window, s.sizes.window});
  };
  row.product_terms = [](const OperatorShape& s) -> std::uint64_t {
    return s.inputs[0][1] * s.sizes.window * s.sizes.window;
  };
  return row;
}();

constexpr NetworkOperation scores_row = [] {
  NetworkOperation row = contraction("attention_scores", attention_scores);
  row.inputs = 2;
  row.required = {"heads"};
  row.output = scores_shape;
  row.product_terms = [](const OperatorShape& s) -> std::uint64_t { return s.inputs[0][2] / s.sizes.heads; };
  return row;
}();

constexpr NetworkOperation context_row = [] {
  NetworkOperation row = contraction("attention_context", attention_context);
  row.inputs = 2;
  row.output = context_shape;
  row.product_terms = [](const OperatorShape& s) -> std::uint64_t { return s.inputs[1][1]; };
  return row;
}();

constexpr NetworkOperation embedding_row = [] {
  NetworkOperation row = element_wise("embedding", embedding, nothing, per_output<1>);
  row.required = {"rows", "features"};
  row.output = embedded;
  row.parameters = [](const OperatorShape& s) {
    return std::vector<Shape>{{s.sizes.rows, s.sizes.features}};
  };
  return row;
}();

/// x / (1 + exp(-x)); backward its derivative's sigmoid, difference and products. On no list of autocast.
constexpr NetworkOperation silu_row = [] {
  NetworkOperation row = keeping_input(element_wise("silu", cast, per_output<5>, per_output<9>));
  row.operation = nullptr;
  return row;
}();

constexpr NetworkOperation of_two_inputs(NetworkOperation row) {
  row.inputs = 2;
  return row;
}

constexpr NetworkOperation add_row = [] {
  NetworkOperation row = of_two_inputs(element_wise("add", add, per_output<1>, nothing));
  row.passes_gradient_on = true;
  return row;
}();

constexpr NetworkOperation dropout_row = [] {
  NetworkOperation row = element_wise("dropout", dropout, per_output<2>, per_output<1>);
  row.mask_bytes = per_output<1>;
  return row;
}();

constexpr NetworkOperation normalisation(NetworkOperation row) {
  row.operator_class = OperatorClass::statistical_normalisation;
  return row;
}

/// Forward: the mean, the deviations and their squares' mean, times the inverse deviation, gain and bias.
/// Backward: the gain, the normalised value and two sums give the input's gradient, three more sums and
/// products those of the parameters.
constexpr NetworkOperation norm(std::string_view name, const Operation& operation) {
  return normalisation(keeping_input(element_wise(name, operation, per_input<7>, per_input<13>)));
}

constexpr NetworkOperation layer_norm_row = [] {
  NetworkOperation row = norm("layer_norm", layer_norm);
  row.parameters = [](const OperatorShape& s) { return two_of(s.inputs[0].back()); };
  row.saved_elements = [](const OperatorShape& s) -> std::uint64_t {
    return 2 * (element_count(s.inputs[0]) / s.inputs[0].back());
  };
  return row;
}();

/// Forward: squares, their sum, times the inverse root of their mean, gain. Backward: the gain, the normalised value and a sum
/// give the input's gradient, a product and a sum that of the gain. Autocast treats it as a layer norm, as models do that
/// write it themselves.
constexpr NetworkOperation rms_norm_row = [] {
  NetworkOperation row =
      normalisation(keeping_input(element_wise("rms_norm", layer_norm, per_input<4>, per_input<9>)));
  row.parameters = [](const OperatorShape& s) { return std::vector<Shape>{{s.inputs[0].back()}}; };
  row.saved_elements = [](const OperatorShape& s) -> std::uint64_t {
    return element_count(s.inputs[0]) / s.inputs[0].back();
  };
  return row;
}();

constexpr NetworkOperation batch_norm_row = [] {
  NetworkOperation row = norm("batch_norm", batch_norm);
  row.output = [](const OperatorShape& s) {
    if (s.inputs[0].size() < 2) reject(s, "batch x channels, and perhaps height x width");
    return s.inputs[0];
  };
  row.parameters = [](const OperatorShape& s) { return two_of(s.inputs[0][1]); };
  row.saved_elements = [](const OperatorShape& s) -> std::uint64_t { return 2 * s.inputs[0][1]; };
  return row;
}();

constexpr NetworkOperation max_pool_row = [] {
  NetworkOperation row =
      keeping_input(element_wise("max_pool2d", max_pool2d, comparisons_of_windows, per_output<1>));
  row.required = {"window"};
  row.optional = {"stride", "padding"};
  row.output = pooled;
  row.mask_bytes = per_output<8>;
  return row;
}();

constexpr NetworkOperation global_pool_row = [] {
  NetworkOperation row = element_wise("global_average_pool", global_average_pool, per_input<1>, per_input<1>);
  row.output = pooled_globally;
  return row;
}();

constexpr NetworkOperation first_token_row = [] {
  NetworkOperation row = element_wise("first_token", cast, nothing, nothing);
  row.operation = nullptr;
  row.output = without_positions;
  return row;
}();

constexpr NetworkOperation cross_entropy_row = [] {
  NetworkOperation row =
      normalisation(element_wise("softmax_cross_entropy", softmax_cross_entropy, per_input<5>, per_input<1>));
  row.output = [](const OperatorShape&) { return Shape{1}; };
  row.saved_elements = per_input<1>;
  return row;
}();

constexpr std::array rows{
    linear_row,
    conv2d_row,
    scores_row,
    context_row,
    embedding_row,
    keeping_output(element_wise("relu", relu, per_output<1>, per_output<1>)),
    // x/2 (1 + erf(x / sqrt 2)), and its derivative's two terms.
    keeping_input(element_wise("gelu", gelu, per_output<5>, per_output<11>)),
    silu_row,
    keeping_output(element_wise("tanh", tanh, per_output<1>, per_output<3>)),
    keeping_output(element_wise("sigmoid", sigmoid, per_output<4>, per_output<3>)),
    add_row,
    keeping_input(of_two_inputs(element_wise("mul", mul, per_output<1>, per_output<2>))),
    dropout_row,
    // The largest, differences, powers, their sum, quotients; backward products, their sum, differences,
    // products.
    normalisation(keeping_output(element_wise("softmax", softmax, per_output<5>, per_output<4>))),
    layer_norm_row,
    rms_norm_row,
    batch_norm_row,
    max_pool_row,
    global_pool_row,
    first_token_row,
    cross_entropy_row,
};
static_assert(names::has_unique_names(rows));

constexpr std::array sizes{OperatorSize{"features", &OperatorSizes::features, 1},
                           OperatorSize{"rows", &OperatorSizes::rows, 1},
                           OperatorSize{"channels", &OperatorSizes::channels, 1},
                           OperatorSize{"window", &OperatorSizes::window, 1},
                           OperatorSize{"stride", &OperatorSizes::stride, 1},
                           OperatorSize{"padding", &OperatorSizes::padding, 0},
                           OperatorSize{"heads", &OperatorSizes::heads, 1},
                           OperatorSize{"bias", &OperatorSizes::bias, 0}};

}  // namespace

std::string_view name_of(OperatorClass operator_class) {
  switch (operator_class) {
    case OperatorClass::tensor_contraction:
      return "tensor contraction";
    case OperatorClass::statistical_normalisation:
      return "statistical normalisation";
    case OperatorClass::element_wise:
      return "element-wise";
  }
  return {};
}

std::span<const OperatorSize> operator_sizes() {
  return sizes;
}

const NetworkOperation& find_network_operation(std::string_view name) {
  return names::find_by_name(rows, "operation", name);
}

bool is_batch_norm(const NetworkOperation& operation) {
  return operation.operation == &batch_norm;
}

}  // namespace sim
