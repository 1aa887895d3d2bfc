#include "tests/fuzz/fuzz.h"
#include "tools/halflab/replay/findings.h"

/// The input as the log of a library, then as a table.
HALFLAB_FUZZ(input) {
  const std::string file = fuzz::as_file(input, "replay").string();
  fuzz::allow_refusal([&] {
    if (const auto log = halflab::replay::read_log(file); log && log->sinking() > log->bounding().size())
      throw "more overflows sank than bound anything";
  });
  fuzz::allow_refusal([&] { halflab::replay::read_record(file); });
}
