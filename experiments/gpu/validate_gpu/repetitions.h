#pragma once
/// Shards that a device is asked for a second time, for the examples of what differs: a shard file has none.

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "experiments/gpu/validate_gpu/budget.h"
#include "experiments/gpu/validate_gpu/device_failures.h"
#include "experiments/gpu/validate_gpu/driver.h"

namespace experiments::validate_gpu {

/// Of one run; refers to its failures and its budget.
class Repetitions {
 public:
  Repetitions(DeviceFailures& failures, const Budget& budget) : failures_(failures), budget_(budget) {}

  /// The first answer, which took so long.
  void keep(const Driver& driver, std::uint32_t shard, DeviceAnswer first, Seconds time);

  /// The second answer, for which the device is asked once, however many rows share it. With the budget spent, or
  /// where the device fails, the first one has to do; nothing where it was not kept.
  const std::optional<DeviceAnswer>& answer_of(const Driver& driver, std::uint32_t shard);

 private:
  struct First {
    DeviceAnswer answer;
    Seconds time;
  };
  using Place = std::pair<const Driver*, std::uint32_t>;

  DeviceFailures& failures_;
  const Budget& budget_;
  std::map<Place, First> first_;
  std::map<Place, std::optional<DeviceAnswer>> answers_;
};

}  // namespace experiments::validate_gpu
