#include "fp16/vector/lanes_neon_bytes.h"
#include "fp16/vector/philox_lanes.h"

namespace fp16::detail {

void philox_neon(const Philox& philox, std::uint64_t number, std::uint32_t* out, std::size_t groups) {
  philox_groups<NeonWords32>(philox, number, out, groups);
}

}  // namespace fp16::detail
