#include "sim/loss_scaling/loss_scaler.h"

#include <stdexcept>

namespace sim {
namespace {

struct NoState {
  static constexpr std::string_view subject = "scaler without memory";
  static void visit(auto&, auto&&) {}
};

}  // namespace

Decision LossScaler::update(const GradientSummary& summary) {
  require(!needs_exponents() || summary.exponents != nullptr, "the exponents of its gradients");
  used_scale_ = scale();
  return decide(summary);
}

void LossScaler::restore(const names::NamedValues& state) {
  names::state_from<NoState>(state);
}

void LossScaler::require(bool present, std::string_view what) const {
  if (present) return;
  throw std::invalid_argument("scaler '" + std::string(name()) + "': a step came without " +
                              std::string(what));
}

}  // namespace sim
