#include "tests/fuzz/fuzz.h"
#include "tools/halflab/selftest/hash_table.h"

/// What is read reads back from its own text.
HALFLAB_FUZZ(input) {
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  fuzz::allow_refusal([&] {
    const std::string own = text_of(halflab::selftest::parse_hashes(text, "hashes.tsv"));
    if (text_of(halflab::selftest::parse_hashes(own, "own.tsv")) != own)
      throw "its own text is not read back";
  });
}
