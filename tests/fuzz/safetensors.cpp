#include "experiments/frame/tensor_files/safetensors.h"

#include "tests/fuzz/tensors.h"

HALFLAB_FUZZ(input) {
  fuzz::read_all(input, experiments::tensor_files::parse_safetensors);
}
