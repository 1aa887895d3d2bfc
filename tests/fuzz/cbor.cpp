#include "experiments/frame/json.h"
#include "tests/fuzz/fuzz.h"

HALFLAB_FUZZ(input) {
  const std::string_view bytes(reinterpret_cast<const char*>(input.data()), input.size());
  fuzz::allow_refusal([&] { experiments::Json::from_cbor(bytes); });
}
