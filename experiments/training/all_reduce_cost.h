#pragma once
/// What the rounding of an all-reduce costs a training: its runs beside others that differ from them in the precision of
/// the all-reduce alone, which is FP32.

#include <span>
#include <string>
#include <string_view>

#include "experiments/training/comparison.h"
#include "sim/trainer/data_parallel.h"

namespace experiments {

/// Whether there is anything to cost: several ranks, and an all-reduce that is not in FP32 anyway.
bool rounds_in_all_reduce(const sim::DataParallel& parallel);

/// `parallel` with an all-reduce in FP32.
sim::DataParallel all_reduced_in_fp32(sim::DataParallel parallel);

/// Runs and those they are held against, of the same seeds.
struct AllReduceCost {
  std::string name;
  const SeedGroup& runs;
  const SeedGroup& in_fp32;

  /// In pairs of the same seed: of final_accuracy the difference, of final_loss the mean of the pairs' ratios less 1.
  Estimate of(std::string_view quality) const;
};

/// "What an all-reduce in fp16 over 4 ranks costs: ...": whether it is more than chance, and how much.
std::string all_reduce_cost_sentence(const sim::DataParallel& parallel, std::span<const AllReduceCost> costs,
                                     std::string_view quality);

}  // namespace experiments
