#include "sim/loss_scaling/fairseq_scaler.h"

#include <algorithm>

#include "sim/loss_scaling/scheduler.h"

namespace sim {

FairseqScaler::FairseqScaler(const Options& options)
    : options_(names::checked(options)), state_{.scale = options.init_scale} {
  check_scale_limits(Options::subject, options.init_scale, options.min_scale, 0);
}

Decision FairseqScaler::decide(const GradientSummary& summary) {
  abort_reason_.clear();
  if (summary.found_nonfinite) return bad_step();
  if ((state_.iteration - state_.last_overflow) % options_.growth_interval == 0) {
    state_.scale *= options_.growth_factor;
    state_.last_rescale = state_.iteration;
  }
  state_.iteration += 1;
  return Decision::apply;
}

Decision FairseqScaler::bad_step() {
  const double previous = state_.scale;
  // The iteration has not advanced past the last rescale only after an abort, whose share counts as small.
  const int since_rescale = state_.iteration - state_.last_rescale;
  state_.last_overflow = state_.iteration;
  state_.overflows_since_rescale += 1;
  const double share = state_.overflows_since_rescale / (since_rescale == 0 ? 1000.0 : since_rescale);
  if (share >= options_.tolerance) back_off();
  if (state_.scale <= options_.min_scale) {
    abort_reason_ = std::string(Options::subject) + ": the scale would fall to " +
                    names::number_text(state_.scale) +
                    "; allowed: more than min_scale = " + names::number_text(options_.min_scale);
    state_.scale = previous;
    return Decision::abort;
  }
  state_.iteration += 1;
  return Decision::skip;
}

void FairseqScaler::back_off() {
  state_.scale = std::max(state_.scale / options_.growth_factor, options_.threshold);
  state_.last_rescale = state_.iteration;
  state_.overflows_since_rescale = 0;
}

}  // namespace sim
