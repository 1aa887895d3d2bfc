#include "experiments/frame/toml_file.h"
#include "tests/fuzz/fuzz.h"

HALFLAB_FUZZ(input) {
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  fuzz::allow_refusal([&] { experiments::parse_toml(text, "input.toml"); });
}
