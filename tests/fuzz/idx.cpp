#include "sim/data/idx.h"

#include "tests/fuzz/fuzz.h"

HALFLAB_FUZZ(input) {
  fuzz::allow_refusal([&] { sim::read_idx(fuzz::as_file(input, "x-idx3-ubyte.gz"), 3); });
}
