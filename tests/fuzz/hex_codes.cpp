#include "tests/fuzz/fuzz.h"
#include "tools/halflab/validate/code_file.h"

HALFLAB_FUZZ(input) {
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  for (const int bits : {8, 16, 64})
    fuzz::allow_refusal([&] { halflab::validate::codes_in(text, "codes.hex", bits); });
}
