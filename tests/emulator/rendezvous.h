#pragma once
/// The lanes of a warp that a .sync instruction brings together.

#include "tests/emulator/warp.h"

namespace emulator {

/// Which of the lanes in `mask` have all of their members with them, and go on; the others wait for theirs. A lane's
/// members are the bits of its value in `members`, of which those that have exited do not count.
Mask rendezvous(Warp& warp, Slot members, Mask mask);

/// A rendezvous of an instruction that all 32 lanes must execute; throws Fault if some have exited.
Mask rendezvous_of_all(Warp& warp, Mask mask);

}  // namespace emulator
