#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/trainer/allreduce.h"
#include "sim/trainer/wire.h"

namespace sim {

/// Arrays of one all-reduce that the next one finds in place.
struct AllReduceSpace {
  std::vector<float> received = {};
  std::vector<std::uint16_t> sent_codes = {}, received_codes = {};
};

/// What all_reduce_mean forms, on every rank, each of which has only its own array: the order's additions made by the
/// ranks that it says, with messages between them. Of values of wire_format(), whose codes are sent. All ranks call it with arrays
/// of one length.
std::vector<float> all_reduce_over(Wire& wire, std::span<const float> own, const AllReduce& how,
                                   AllReduceSpace& space);

}  // namespace sim
