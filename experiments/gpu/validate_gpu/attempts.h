#pragma once
/// What bounds a run's attempts: its time, and a device that fails. A run says at what, and goes on with what is left.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "experiments/frame/interrupt.h"
#include "experiments/frame/stopwatch.h"
#include "experiments/gpu/validate_gpu/drivers.h"

namespace experiments::validate_gpu {

/// A limit in seconds from now on; none means unlimited.
class Budget {
 public:
  explicit Budget(std::optional<double> seconds) : seconds_(seconds) {}

  /// Whether what takes so many seconds would end within it.
  bool allows(double next_s = 0) const { return !seconds_ || stopwatch_.seconds() + next_s < *seconds_; }

 private:
  Stopwatch stopwatch_;
  std::optional<double> seconds_;
};

struct DeviceFailure {
  std::vector<std::string> rows;  ///< Row::id() of those whose results are missing
  std::string text;               ///< at what of them, and how
};

/// The failures of one run, in the order of time.
class DeviceFailures {
 public:
  /// What `ask` returns; nothing where it throws std::runtime_error, which becomes a failure at `what`, such as
  /// "shard 3", of the rows that share the answer.
  template <typename Ask>
  auto attempt(const std::vector<std::string>& rows, const std::string& what, Ask ask)
      -> std::optional<decltype(ask())> {
    try {
      std::optional<decltype(ask())> answer = ask();
      in_a_row_ = 0;
      return answer;
    } catch (const Interrupted&) {
      throw;
    } catch (const std::runtime_error& error) {
      all_.push_back({.rows = rows, .text = fmt::format("{}, {}: {}", rows.front(), what, error.what())});
      ++in_a_row_;
      return std::nullopt;
    }
  }

  const std::vector<DeviceFailure>& all() const { return all_; }
  bool concern(const std::string& row) const {
    return std::ranges::any_of(all_, [&](const DeviceFailure& each) {
      return std::ranges::find(each.rows, row) != each.rows.end();
    });
  }

  /// After three failures in a row: what a kernel's fault leaves of the device answers all later calls with it.
  bool is_device_lost() const { return in_a_row_ >= 3; }

 private:
  std::vector<DeviceFailure> all_;
  int in_a_row_ = 0;
};

/// The shards that a device is asked for a second time, for the examples of what differs: a shard file has none.
/// Refers to the failures and the budget of its run.
class Repetitions {
 public:
  Repetitions(DeviceFailures& failures, const Budget& budget) : failures_(failures), budget_(budget) {}

  /// The first answer, which took so many seconds.
  void keep(const Driver& driver, std::uint32_t shard, DeviceAnswer first, double time_s) {
    first_.try_emplace({&driver, shard}, First{.answer = std::move(first), .time_s = time_s});
  }

  /// The second answer, for which the device is asked once, however many rows share it. With the budget spent, or
  /// where the device fails, the first one has to do; nothing where it was not kept.
  const std::optional<DeviceAnswer>& answer_of(const Driver& driver, std::uint32_t shard);

 private:
  struct First {
    DeviceAnswer answer;
    double time_s;
  };
  using Place = std::pair<const Driver*, std::uint32_t>;

  DeviceFailures& failures_;
  const Budget& budget_;
  std::map<Place, First> first_;
  std::map<Place, std::optional<DeviceAnswer>> answers_;
};

inline const std::optional<DeviceAnswer>& Repetitions::answer_of(const Driver& driver, std::uint32_t shard) {
  const auto [place, is_new] = answers_.try_emplace({&driver, shard});
  std::optional<DeviceAnswer>& answer = place->second;
  if (!is_new) return answer;
  const auto first = first_.find({&driver, shard});
  const bool is_known = first != first_.end();
  if (!failures_.is_device_lost() && (!is_known || budget_.allows(first->second.time_s)))
    answer =
        failures_.attempt(driver.rows, fmt::format("shard {}", shard), [&] { return driver.run(shard); });
  if (!answer && is_known) answer = first->second.answer;
  return answer;
}

}  // namespace experiments::validate_gpu
