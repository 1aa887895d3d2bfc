#include "sim/loss_scaling/registry.h"

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "fp16/names.h"
#include "sim/loss_scaling/ada_loss.h"
#include "sim/loss_scaling/adaptive_scaler.h"
#include "sim/loss_scaling/current_scaling.h"
#include "sim/loss_scaling/delayed_scaling.h"
#include "sim/loss_scaling/dynamic_schedulers.h"
#include "sim/loss_scaling/fairscale_layerwise.h"
#include "sim/loss_scaling/fairseq_scaler.h"
#include "sim/loss_scaling/log_max_scaler.h"
#include "sim/loss_scaling/no_scaling.h"
#include "sim/loss_scaling/static_scaler.h"
#include "sim/loss_scaling/upper_bin_scaler.h"

namespace sim {
namespace {

using enum ScalerKind;

template <class Scaler>
AnyScaler make(const names::GivenOptions& options) {
  const auto checked_options = names::options_from<typename Scaler::Options>(options);
  if constexpr (std::is_polymorphic_v<Scaler>) {
    return std::make_unique<Scaler>(checked_options);
  } else {
    return Scaler(checked_options);
  }
}

/// The row of one scheduler among those that share the state machine `Scaler`.
template <class Scaler, const auto& scheduler>
constexpr ScalerRow row_of() {
  return {scheduler.name, scheduler.description, global, [](const names::GivenOptions& options) -> AnyScaler {
            return std::make_unique<Scaler>(scheduler,
                                            names::options_from<SchedulerOptions<scheduler>>(options).rule);
          }};
}

constexpr std::array rows{
    ScalerRow{"none", "no scaling: S = 1, never skips a step", global, make<NoScaling>},
    ScalerRow{"static", "constant S; skips steps whose gradients are not finite", global, make<StaticScaler>},
    row_of<DynamicScaler, dynamic_schedulers::pytorch>(),
    ScalerRow{"adaptive", "S that loses least by the exponents of the gradients and of their twin", global,
              make<AdaptiveScaler>},
    row_of<DynamicScaler, dynamic_schedulers::apex_amp>(),
    row_of<DynamicScaler, dynamic_schedulers::apex_fp16_optimizer>(),
    row_of<DynamicScaler, dynamic_schedulers::apex_hysteresis>(),
    row_of<DynamicScaler, dynamic_schedulers::megatron>(),
    row_of<DynamicScaler, dynamic_schedulers::deepspeed>(),
    ScalerRow{"fairseq", "fairseq: tolerates a share of bad steps; the run ends at the smallest scale",
              global, make<FairseqScaler>},
    row_of<DynamicScaler, dynamic_schedulers::colossalai>(),
    row_of<DynamicScaler, dynamic_schedulers::openseq2seq_backoff>(),
    ScalerRow{"openseq2seq_log_max",
              "OpenSeq2Seq LogMax: S from mean and spread of log2 of the largest gradient", global,
              make<LogMaxScaler>},
    row_of<DynamicScaler, dynamic_schedulers::tensorflow>(),
    row_of<DynamicScaler, dynamic_schedulers::keras>(),
    row_of<DynamicScaler, dynamic_schedulers::jmp>(),
    row_of<DynamicScaler, dynamic_schedulers::flax>(),
    row_of<DynamicScaler, dynamic_schedulers::paddle>(),
    row_of<DynamicScaler, dynamic_schedulers::paddle_static>(),
    row_of<DynamicScaler, dynamic_schedulers::mindspore>(),
    row_of<DynamicScaler, dynamic_schedulers::mindspore_manager>(),
    row_of<UpperBinScaler, popart>(),
    row_of<UpperBinScaler, graphcore_tensorflow>(),
    ScalerRow{"ada_loss", "AdaLoss: a factor for each layer's incoming gradient, from its spread", layer,
              make<AdaLoss>},
    ScalerRow{"fairscale_layerwise", "fairscale: a dynamic scale for each layer", layer,
              make<FairscaleLayerwise>},
    ScalerRow{"delayed", "Transformer Engine delayed scaling: casts by the largest values of past steps",
              tensor, make<DelayedScaling>},
    ScalerRow{"current",
              "Transformer Engine current scaling: casts by the largest value of the tensor itself", tensor,
              make<CurrentScaling>},
    ScalerRow{"unit_scaling",
              "unit scaling: fixed multipliers that start all tensors near variance 1; needs a learning rate "
              "of its own, "
              "0.01 to 0.03",
              parametrisation, make<UnitScaling>},
};
static_assert(names::has_unique_names(rows));

}  // namespace

std::string_view kind_name(ScalerKind kind) {
  constexpr std::array<std::string_view, 4> names{"global", "layer", "tensor", "parametrisation"};
  return names[static_cast<std::size_t>(kind)];
}

std::span<const ScalerRow> scalers() {
  return rows;
}

AnyScaler make_any_scaler(std::string_view name, const names::GivenOptions& options) {
  return names::find_by_name(rows, "scaler", name).make(options);
}

std::unique_ptr<LossScaler> make_scaler(std::string_view name, const names::GivenOptions& options) {
  const ScalerRow& row = names::find_by_name(rows, "scaler", name);
  if (row.kind != global) {
    throw std::invalid_argument("scaler '" + std::string(name) + "' is of kind " +
                                std::string(kind_name(row.kind)) + "; allowed here: global loss scalers");
  }
  return std::get<std::unique_ptr<LossScaler>>(row.make(options));
}

names::NamedValues options_of(const AnyScaler& scaler) {
  return std::visit(
      [](const auto& held) {
        if constexpr (requires { held->options(); }) {
          return held->options();
        } else {
          return held.options();
        }
      },
      scaler);
}

}  // namespace sim
