#include <cstring>

#include "tests/bench/peers.h"

namespace bench {

std::uint64_t sum_words(const void* data, std::size_t bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i + sizeof sum <= bytes; i += sizeof sum) {
    std::uint64_t word;
    std::memcpy(&word, static_cast<const char*>(data) + i, sizeof word);
    sum += word;
  }
  return sum;
}

}  // namespace bench
