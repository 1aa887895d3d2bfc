#include "sim/tensor/random.h"

#include <Random123/philox.h>

namespace sim {

RandomStream::Block RandomStream::block(std::uint64_t number) const {
  const r123::Philox4x32::ctr_type counter{{low(number), high(number), low(purpose_), high(purpose_)}};
  const r123::Philox4x32::ctr_type words = r123::Philox4x32{}(counter, {{key_[0], key_[1]}});
  return {words[0], words[1], words[2], words[3]};
}

void RandomStream::fill_bits(std::uint64_t first, std::span<std::uint32_t> out) const {
  for (std::size_t i = 0; i < out.size();) {
    const Block words = block((first + i) / 4);
    for (std::size_t word = (first + i) % 4; word < 4 && i < out.size(); ++word) out[i++] = words[word];
  }
}

}  // namespace sim
