#include "sim/schedules/registry.h"

#include <array>

#include "fp16/names.h"
#include "sim/schedules/decays.h"

namespace sim {
namespace {

template <class Rule>
std::unique_ptr<Schedule> make(const names::GivenOptions& options) {
  return std::make_unique<ScheduleByRule<Rule>>(names::options_from<Rule>(options));
}

constexpr std::array rows{
    ScheduleRow{ConstantRule::name, "the optimizer's learning rate throughout", make<ConstantRule>},
    ScheduleRow{CosineRule::name, "half a cosine wave down to a final factor", make<CosineRule>},
    ScheduleRow{LinearRule::name, "a straight line down to a final factor", make<LinearRule>},
    ScheduleRow{StepRule::name, "a drop by a constant factor once in a period", make<StepRule>},
};
static_assert(names::has_unique_names(rows));

}  // namespace

std::span<const ScheduleRow> schedules() {
  return rows;
}

std::unique_ptr<Schedule> make_schedule(std::string_view name, const names::GivenOptions& options) {
  return names::find_by_name(rows, "schedule", name).make(options);
}

}  // namespace sim
