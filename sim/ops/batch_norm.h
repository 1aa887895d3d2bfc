#pragma once

#include "sim/ops/operation.h"

namespace sim {

struct BatchNormOptions {
  double epsilon = 1e-5;               ///< added to the variance
  double momentum = 0.1;               ///< weight of a batch in the running statistics
  Tensor* running_mean = nullptr;      ///< updated in training, used in evaluation; null: the batch's own
  Tensor* running_variance = nullptr;  ///< likewise
};

/// Normalised channels: inputs x (N x C x ...), weight and bias (C).
/// y = (x - mean) * inverse * weight + bias, where inverse = 1 / sqrt(variance + epsilon), per channel: of
/// the batch in training, else the running ones. Batch statistics take two passes, each summed in the
/// interleaved order through the pixels of the images, in ascending order. Saved: the channels' means and
/// their inverses.
///
/// Where the shards of a batch are gathered, the statistics are those of all of them, as torch.nn.SyncBatchNorm's: of
/// what each shard finds for itself in that order, sums in the order of the shards.
extern const Operation batch_norm;

}  // namespace sim
