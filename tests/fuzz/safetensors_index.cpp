#include "experiments/frame/tensor_files/safetensors.h"
#include "tests/fuzz/fuzz.h"

HALFLAB_FUZZ(input) {
  fuzz::allow_refusal(
      [&] { experiments::tensor_files::shards_of(fuzz::as_file(input, "x.safetensors.index.json")); });
}
