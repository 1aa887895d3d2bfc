#include "sim/loss_scaling/scheduler.h"

namespace sim {

void check_scale_limits(std::string_view subject, double init_scale, double min_scale, double max_scale) {
  const bool has_ceiling = max_scale > 0;
  if (has_ceiling && min_scale > max_scale) {
    throw names::OptionError(subject, "min_scale", min_scale,
                             "at most max_scale = " + names::number_text(max_scale));
  }
  if (init_scale < min_scale) {
    throw names::OptionError(subject, "init_scale", init_scale,
                             "at least min_scale = " + names::number_text(min_scale));
  }
  if (has_ceiling && init_scale > max_scale) {
    throw names::OptionError(subject, "init_scale", init_scale,
                             "at most max_scale = " + names::number_text(max_scale));
  }
}

}  // namespace sim
