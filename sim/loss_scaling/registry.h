#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <variant>

#include "sim/loss_scaling/layer_scaler.h"
#include "sim/loss_scaling/loss_scaler.h"
#include "sim/precision/tensor_scaler.h"
#include "sim/precision/unit_scaling.h"

namespace sim {

/// What a scaler takes hold of: one factor of the whole loss; the gradient that arrives at a layer; the scale
/// of one tensor's cast; the multipliers written into the model itself.
enum class ScalerKind { global, layer, tensor, parametrisation };

/// "global", "layer", "tensor", "parametrisation".
std::string_view kind_name(ScalerKind kind);

/// A scaler of any kind, the alternatives in the order of ScalerKind.
using AnyScaler = std::variant<std::unique_ptr<LossScaler>, std::unique_ptr<LayerScaler>,
                               std::unique_ptr<TensorScaler>, UnitScaling>;

struct ScalerRow {
  std::string_view name;
  std::string_view description;
  ScalerKind kind;
  AnyScaler (*make)(const names::GivenOptions& options);
};

/// All scalers of all kinds, in the order in which they are listed.
std::span<const ScalerRow> scalers();

/// A scaler by name, with its defaults where no option is given: make_any_scaler("megatron",
/// {{"growth_interval", 20}}). Throws std::invalid_argument for an unknown scaler or option, or a value that
/// is not allowed.
AnyScaler make_any_scaler(std::string_view name, const names::GivenOptions& options = {});

/// make_any_scaler for a global loss scaler; throws std::invalid_argument for one of another kind, too.
std::unique_ptr<LossScaler> make_scaler(std::string_view name, const names::GivenOptions& options = {});

/// The options in force, of a scaler of any kind.
names::NamedValues options_of(const AnyScaler& scaler);

}  // namespace sim
