#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "sim/schedules/schedule.h"

namespace sim {

struct ScheduleRow {
  std::string_view name;
  std::string_view description;
  std::unique_ptr<Schedule> (*make)(const names::GivenOptions& options);
};

/// All schedules, in the order in which they are listed.
std::span<const ScheduleRow> schedules();

/// A schedule by name, with its defaults where no option is given: make_schedule("cosine",
/// {{"warmup_steps", 100}}). Throws std::invalid_argument for an unknown schedule or option, or a value that
/// is not allowed.
std::unique_ptr<Schedule> make_schedule(std::string_view name = "constant",
                                        const names::GivenOptions& options = {});

}  // namespace sim
