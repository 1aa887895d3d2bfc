#pragma once
/// Data-parallel training: what the ranks of a step make of their gradients together.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "fp16/exponent_histogram.h"
#include "sim/tape/tape.h"
#include "sim/trainer/exchange.h"

namespace sim {

/// How a step is spread over ranks, each of which computes an equal part of every batch.
struct DataParallel {
  std::size_t ranks = 1;
  AllReduce all_reduce = {};
  /// Where a gradient that is not finite is looked for: in the mean over all ranks, as under PyTorch's
  /// DistributedDataParallel; or by each rank in its own before they are exchanged, and what any rank has found counts for
  /// all (found_inf reduced by maximum, as by FSDP's ShardedGradScaler). What overflows in the exchange itself is then
  /// not seen.
  bool looks_before_exchange = false;
  /// Batch norm takes the statistics of the whole batch. Else each rank takes those of its part, and the running ones
  /// are those of rank 0.
  bool sync_batch_norm = false;
};

/// Puts the mean over all ranks into the parameter gradients of the first of `own`, each an own rank's. What a rank sends
/// are its gradients one after the other, in the order of the sites, every value rounded once to binary16, or to
/// binary32 where the precision is fp32; what comes back is rounded once to the format of the gradient.
void all_reduce_gradients(std::span<const GradientSite> sites, std::span<SiteGradients* const> own,
                          const AllReduce& how, Exchange& exchange);

/// Likewise of twins: summed in their own format in the order of the ranks, then divided by their number.
void average_twins(std::span<const GradientSite> sites, std::span<SiteGradients* const> own,
                   Exchange& exchange);

/// Exponents of the parameter gradients of the first of `own`, which has the means, and of the activation gradients of
/// all ranks.
fp16::ExponentHistogram exponents_over_ranks(std::span<const GradientSite> sites,
                                             std::span<SiteGradients* const> own, Exchange& exchange);

/// The mean of a number that each rank has: the sum in binary64, in the order of the ranks, over their number.
double mean_over_ranks(std::span<const double> own, Exchange& exchange);

/// Whether any rank has found something.
bool any_rank(const std::vector<bool>& own, Exchange& exchange);

}  // namespace sim
