#include "sim/loss_scaling/registry.h"

#include <array>

#include "sim/loss_scaling/adaptive_scaler.h"
#include "sim/loss_scaling/dynamic_scaler.h"
#include "sim/loss_scaling/no_scaling.h"
#include "sim/loss_scaling/static_scaler.h"
#include "sim/registry.h"

namespace sim {
namespace {

template <class Scaler>
std::unique_ptr<LossScaler> make(const GivenOptions& options) {
  return std::make_unique<Scaler>(options_from<typename Scaler::Options>(options));
}

constexpr std::array rows{
    ScalerRow{"none", "no scaling: S = 1, never skips a step", make<NoScaling>},
    ScalerRow{"static", "constant S; skips steps with non-finite gradients", make<StaticScaler>},
    ScalerRow{"dynamic", "PyTorch GradScaler: halves S on overflow, doubles it after a clean interval",
              make<DynamicScaler>},
    ScalerRow{"adaptive", "S from the gradients' exponents, a stated headroom below overflow",
              make<AdaptiveScaler>},
};
static_assert(has_unique_names(rows));

}  // namespace

std::span<const ScalerRow> scalers() {
  return rows;
}

std::unique_ptr<LossScaler> make_scaler(std::string_view name, const GivenOptions& options) {
  return find_by_name(rows, "scaler", name).make(options);
}

}  // namespace sim
