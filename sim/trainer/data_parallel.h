#pragma once
/// Data-parallel training: what the ranks of a step make of their gradients together.

#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "fp16/exponent_histogram.h"
#include "sim/precision/tensor_scaler.h"
#include "sim/statistics/flight_recorder.h"
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
/// are its gradients one after the other, in the order of the sites, every value rounded once to
/// wire_format(); what comes back is rounded once to the format of the gradient.
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

/// Where others compute ranks as well: the largest of all their magnitudes, on which later scales depend.
void share_maxima(TensorScaler& scaler, Exchange& exchange);

/// Of the records that ranks have made of a step that is skipped, in which backward pass each, that of the first pass and
/// in it of the lowest rank; none where none has one.
std::optional<SkipRecord> first_over_ranks(const std::optional<SkipRecord>& own, std::size_t pass,
                                           Exchange& exchange);

/// Ranks that should be alike and are not, in a line that names those that differ from most, and the step.
struct RanksDiffer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The ranks whose numbers are not those that most ranks have; of as many, those that rank 0 has not.
std::vector<std::size_t> odd_ranks(std::span<const double> of_each_rank);
/// "rank 2", "ranks 2, 5 and 7".
std::string ranks_text(std::span<const std::size_t> ranks);

/// Throws RanksDiffer on all ranks where a rank has come out of the exchange of a step with other parameter gradients than
/// the others, by their fingerprints, or would skip it alone.
void require_same_gradients(std::span<const GradientSite> sites, const SiteGradients& gradients,
                            bool found_nonfinite, std::size_t step, Exchange& exchange);

}  // namespace sim
