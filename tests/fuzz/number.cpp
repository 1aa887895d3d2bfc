#include "fp16/half_text.h"
#include "fp16/names.h"
#include "tests/fuzz/fuzz.h"

HALFLAB_FUZZ(input) {
  const std::string text(reinterpret_cast<const char*>(input.data()), input.size());
  fuzz::allow_refusal([&] { fp16::parse_half(text); });
  fuzz::allow_refusal([&] { names::parse_numeric_spec(text); });
}
