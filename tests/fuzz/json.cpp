#include "experiments/frame/json.h"

#include "tests/fuzz/fuzz.h"

HALFLAB_FUZZ(input) {
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  using experiments::Json;
  fuzz::allow_refusal([&] {
    const Json document = Json::from_text(text);
    if (!document.is_null() && Json::from_text(document.to_text()).is_null())
      throw "its own text is not read back";
  });
}
