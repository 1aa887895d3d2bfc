#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/trainer/allreduce.h"
#include "sim/trainer/wire.h"

namespace sim {

/// Arrays of one all-reduce that the next one finds in place.
struct AllReduceSpace {
  template <class Code>
  struct Codes {
    std::vector<Code> codes = {};
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

}  // namespace sim
