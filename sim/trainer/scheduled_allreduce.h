#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/trainer/allreduce.h"
#include "sim/trainer/wire.h"

namespace sim {

/// The most elements of a message whose numbers are added as soon as they have come: they are still in a second cache then.
inline constexpr std::size_t all_reduce_piece = std::size_t{1} << 16;

/// Arrays of one all-reduce that the next one finds in place.
struct AllReduceSpace {
  template <class Code>
  struct Codes {
    std::vector<Code> own = {};
    std::vector<std::vector<Code>> received = {};
  };
  Codes<std::uint16_t> halves = {};
  Codes<float> numbers = {};
  std::vector<float> mean = {};
};

/// What all_reduce_mean forms, on every rank, each of which has only its own array: the order's additions made by the
/// ranks that it says, with messages between them. Of values of wire_format(), whose codes are sent. All ranks call it with arrays
/// of one length. Valid until the next one in this space.
std::span<const float> all_reduce_over(Wire& wire, std::span<const float> own, const AllReduce& how,
                                       AllReduceSpace& space);

/// The additions of all_reduce_over alone: puts the codes of the sums over all ranks in the place of each rank's, of
/// wire_format(). Which NaN a sum has is left open. Throws std::invalid_argument for fp32, which has no codes of 16 bits.
void sum_over(Wire& wire, std::span<std::uint16_t> codes, const AllReduce& how, AllReduceSpace& space);

}  // namespace sim
