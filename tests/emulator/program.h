#pragma once
/// A kernel as the emulator runs it: decoded instructions on the register files of warps.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/emulator/ptx_text.h"
#include "tests/emulator/types.h"

namespace emulator {

inline constexpr int warp_size = 32;

/// One bit a lane.
using Mask = std::uint32_t;

/// Where a register lies in a warp's register file, in bytes: 32 values side by side, or the mask of a predicate.
using Slot = std::uint32_t;
inline constexpr Slot no_slot = ~Slot{0};

constexpr std::uint32_t slot_bytes(Type type) {
  return type == Type::pred ? sizeof(Mask) : warp_size * static_cast<std::uint32_t>(bytes_of(type));
}

struct Warp;
struct Instruction;

/// Executes for the lanes of the mask, of which there is at least one.
using Handler = void (*)(Warp&, const Instruction&, Mask);

enum class Rounding { nearest_even, toward_zero, toward_negative, toward_positive };

/// What stands behind an opcode's name, as far as its handler asks.
struct Modifiers {
  Rounding rounding = Rounding::nearest_even;
  bool ftz = false;
  bool saturate = false;
  bool relu = false;
  bool nan = false;           ///< min and max: a NaN operand makes a NaN
  bool wraps = false;         ///< shifts: .wrap instead of .clamp; bfind: .shiftamt
  bool to_integral = false;   ///< conversions: .rni .rzi .rmi .rpi
  bool atomic = false;        ///< loads and stores: .volatile, .relaxed, ...
  bool aligned = false;       ///< barriers: for whole warps
  std::uint8_t accepted = 0;  ///< comparisons: the relations that make it true
};

struct Instruction {
  Handler execute = nullptr;
  /// Destinations and sources of one register each, in the order of PTX.
  std::array<Slot, 5> at{no_slot, no_slot, no_slot, no_slot, no_slot};
  /// Registers of vectors, one vector behind the other.
  std::vector<Slot> vectors{};
  /// A branch's target, an address's offset, a barrier's number, ...
  std::int64_t immediate = 0;
  Modifiers modifiers{};
  Space space = Space::generic;
  Slot guard = no_slot;
  bool guard_negated = false;
  std::string_view text{};
};

enum class Special {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  dynamic_smem_size,
  total_smem_size,
  clock,
  clock_hi,
  clock64,
  globaltimer,
  globaltimer_lo,
};

struct SpecialRegister {
  Slot slot;
  Special special;
};
struct Constant {
  Slot slot;
  int bytes;
  std::uint64_t bits;
};
struct Parameter {
  std::uint64_t offset;
  std::uint64_t size;
};
/// Bytes that a call moves within a thread's local memory.
struct LocalCopy {
  std::uint64_t from;
  std::uint64_t to;
  std::uint64_t size;
};

struct Program {
  std::string name;
  std::vector<Instruction> code;
  std::uint32_t register_bytes = 0;
  std::vector<Constant> constants;
  std::vector<SpecialRegister> specials;
  std::vector<Parameter> parameters;
  std::uint64_t parameter_bytes = 0;
  std::uint64_t static_shared_bytes = 0;  ///< dynamic shared memory begins here
  std::uint64_t local_bytes = 0;
  int max_threads = 1024;
  std::vector<std::vector<std::uint32_t>> branch_targets;
  std::vector<std::vector<LocalCopy>> copies;
};

}  // namespace emulator
