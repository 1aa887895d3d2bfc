#include "experiments/training/mpi/module.h"

namespace experiments {

/// In the place of a module of a library that was not found when Halflab was configured.
const MpiModule* halflab_mpi_module() {
  return nullptr;
}

}  // namespace experiments
