#include "experiments/frame/tensor_files/npz.h"

#include "tests/fuzz/tensors.h"

HALFLAB_FUZZ(input) {
  fuzz::read_all(input, experiments::tensor_files::parse_npz);
}
