#pragma once
/// What a run makes of a device that fails: it says at what, and goes on with what is left.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/frame/interrupt.h"

namespace experiments::validate_gpu {

struct DeviceFailure {
  std::vector<std::string> rows;  ///< Row::id() of those whose results are missing
  std::string text;               ///< at what of them, and how
};

/// Those of one run, in the order of time.
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

}  // namespace experiments::validate_gpu
