#include <array>
#include <string>

#include "fp16/names.h"
#include "sim/ops/operation.h"

namespace sim {

std::span<const Operation* const> operations() {
  static constexpr std::array rows{
      &cast,
      &matmul,
      &bias,
      &linear,
      &conv2d,
      &attention_scores,
      &attention_context,
      &lstm,
      &embedding,
      &relu,
      &gelu,
      &tanh,
      &sigmoid,
      &exp,
      &log,
      &pow,
      &add,
      &mul,
      &scale,
      &dropout,
      &softmax,
      &log_softmax,
      &layer_norm,
      &batch_norm,
      &max_pool2d,
      &average_pool2d,
      &global_average_pool,
      &channels_last,
      &sum,
      &mean,
      &variance,
      &softmax_cross_entropy,
      &mean_squared_error,
      &mean_absolute_error,
      &smooth_l1,
      &binary_cross_entropy,
      &binary_cross_entropy_with_logits,
  };
  return rows;
}

const Operation& find_operation(std::string_view name) {
  std::vector<std::string> names;
  for (const Operation* operation : operations()) {
    if (operation->name == name) return *operation;
    names.emplace_back(operation->name);
  }
  throw std::invalid_argument(names::unknown_name_message("operation", name, names));
}

}  // namespace sim
