#pragma once
/// Rates against the limits of the same run.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/gpu/gpu_throughput/measurement.h"

namespace experiments::gpu_throughput {

enum class Outcome {
  reached,
  missed,
  no_target,
  too_short,  ///< a call of one of the two takes so little time that launching it counts
  not_judged  ///< one of the two was not timed
};

std::string_view name_of(Outcome outcome);

/// Below this a call says more of the launch than of the kernel.
inline constexpr double least_judged_s = 20e-6;

/// A row beside one of those it is compared with; `peer` is null where the group has none of that name.
struct Judgement {
  const Row* row;
  const Row* peer;
  std::string peer_name;
  std::optional<double> target;
  double ratio;  ///< of the rates; 0 unless both were measured
  Outcome outcome;
  std::string key;  ///< of the ratio: "<row>" for a row's first comparison, "<row>.over_<peer>" for others
};

/// In the order of the rows and their comparisons. Refers to `rows`.
std::vector<Judgement> judge(const std::vector<Row>& rows);

}  // namespace experiments::gpu_throughput
