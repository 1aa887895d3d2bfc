#include "fp16/philox.h"
#include "tools/halflab/selftest/fnv1a.h"
#include "tools/halflab/selftest/groups.h"

namespace halflab::selftest {

std::vector<Row> random_rows() {
  const auto hash = [] {
    constexpr std::size_t count = 100'003;
    std::vector<std::uint32_t> words(count);
    fp16::fill_bits({.key = 7, .stream = 9}, 5, words);
    Fnv1a hash;
    hash.add(std::span<const std::uint32_t>(words));
    return hash.value();
  };
  return {{"philox4x32_10", hash}};
}

}  // namespace halflab::selftest
