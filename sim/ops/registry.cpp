#include "sim/ops/registry.h"

#include <array>

#include "sim/ops/add.h"
#include "sim/ops/attention_context.h"
#include "sim/ops/attention_scores.h"
#include "sim/ops/average_pool2d.h"
#include "sim/ops/batch_norm.h"
#include "sim/ops/bias.h"
#include "sim/ops/binary_cross_entropy.h"
#include "sim/ops/binary_cross_entropy_with_logits.h"
#include "sim/ops/cast.h"
#include "sim/ops/channels_last.h"
#include "sim/ops/conv2d.h"
#include "sim/ops/dropout.h"
#include "sim/ops/embedding.h"
#include "sim/ops/exp.h"
#include "sim/ops/gelu.h"
#include "sim/ops/global_average_pool.h"
#include "sim/ops/layer_norm.h"
#include "sim/ops/linear.h"
#include "sim/ops/log.h"
#include "sim/ops/log_softmax.h"
#include "sim/ops/lstm.h"
#include "sim/ops/matmul.h"
#include "sim/ops/max_pool2d.h"
#include "sim/ops/mean.h"
#include "sim/ops/mean_absolute_error.h"
#include "sim/ops/mean_squared_error.h"
#include "sim/ops/mul.h"
#include "sim/ops/pow.h"
#include "sim/ops/relu.h"
#include "sim/ops/scale.h"
#include "sim/ops/sigmoid.h"
#include "sim/ops/smooth_l1.h"
#include "sim/ops/softmax.h"
#include "sim/ops/softmax_cross_entropy.h"
#include "sim/ops/sum.h"
#include "sim/ops/tanh.h"
#include "sim/ops/variance.h"

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

}  // namespace sim
