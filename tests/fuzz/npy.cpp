#include "experiments/frame/tensor_files/npy.h"

#include "tests/fuzz/tensors.h"

HALFLAB_FUZZ(input) {
  fuzz::read_all(input, experiments::tensor_files::parse_npy);
}
