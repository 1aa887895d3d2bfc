#pragma once
/// The families of Halflab: formats, policies, operations, models, scalers, optimizers, schedules, accumulations, data.

#include "experiments/frame/families.h"

namespace experiments {

Families families();

}  // namespace experiments
