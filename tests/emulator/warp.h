#pragma once
/// The state of a thread block while it runs, and the loops over lanes that handlers are made of.

#include <bit>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>

#include "tests/emulator/program.h"
#include "tests/emulator/shared_memory.h"

namespace emulator {

struct AsynchronousCopies;
struct WarpgroupProducts;

struct Dimensions {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

struct Launch {
  const Program& program;
  Dimensions blocks;
  Dimensions threads;
  std::uint64_t dynamic_shared_bytes;
  std::vector<std::byte> parameters;
};

struct Block;

/// 32 threads in lockstep. Lanes at the same place run together: those in the deepest call first, among them
/// those at the lowest place, so that lanes that went different ways meet again where their ways do.
struct Warp {
  Warp(Block& block, int index, int threads);
  Warp(const Warp&) = delete;
  Warp& operator=(const Warp&) = delete;

  Block& block;
  int index;
  std::vector<std::uint64_t> registers;

  std::uint32_t place = 0;  ///< of the next instruction of the lanes that run
  Mask active = 0;          ///< the lanes that run
  bool regroup = false;     ///< set by handlers that change which lanes run, or where
  Mask live = 0;
  Mask at_barrier = 0;
  Mask at_rendezvous = 0;  ///< lanes in a .sync instruction whose other lanes have not come
  Mask carry = 0;
  std::array<std::uint32_t, warp_size> lane_place{};
  std::array<std::vector<std::uint32_t>, warp_size> return_places;
  std::array<std::uint8_t, warp_size> barrier{};  ///< for which the lanes at one wait

  std::shared_ptr<AsynchronousCopies> copies;
  std::shared_ptr<WarpgroupProducts> products;

  std::byte* at(Slot slot) { return reinterpret_cast<std::byte*>(registers.data()) + slot; }
  Mask& predicate(Slot slot) { return *reinterpret_cast<Mask*>(at(slot)); }

  const Instruction& current() const;
  /// Sends `lanes` of the running ones elsewhere; the others go on.
  void jump(Mask lanes, std::uint32_t target);
  void exit(Mask lanes);
  /// Runs for a while, as far as it can. Whether it could do anything.
  bool run();

 private:
  bool choose_lanes();

  std::uint32_t limit_ = 0;  ///< other lanes wait at this place
  bool others_first_ = false;
};

struct NamedBarrier {
  std::uint64_t arrived = 0;
  std::uint64_t expected = 0;      ///< 0: all threads that have not exited
  std::uint32_t votes = 0;         ///< of barrier.red: how many were true
  std::uint64_t last_arrived = 0;  ///< when it was last complete
  std::uint32_t last_votes = 0;
};

struct Block {
  Block(const Launch& launch, Dimensions index);

  /// To the end of all threads; throws Fault.
  void run();
  /// Lets the waiting go on if the barrier is complete.
  void check_barrier(std::size_t number);

  const Launch& launch;
  Dimensions index;
  SharedMemory shared;
  std::vector<std::byte> local;  ///< the local memory of thread after thread
  std::array<NamedBarrier, 16> barriers{};
  std::uint64_t live_threads = 0;
  std::vector<std::unique_ptr<Warp>> warps;
  std::uint64_t executed = 0;  ///< instructions times lanes

  std::byte* local_of(const Warp& warp, int lane) {
    return local.data() +
           (static_cast<std::uint64_t>(warp.index) * warp_size + static_cast<std::uint64_t>(lane)) *
               launch.program.local_bytes;
  }
};

template <typename Body>
void for_lanes(Mask mask, Body body) {
  if (mask == ~Mask{0}) {
    for (int lane = 0; lane < warp_size; ++lane) body(lane);
  } else {
    for (; mask != 0; mask &= mask - 1) body(std::countr_zero(mask));
  }
}

/// A register in all lanes, read and written as `Value`.
template <typename Value>
class Lanes {
 public:
  using Code = UnsignedOf<sizeof(Value)>;
  Lanes(Warp& warp, Slot slot) : codes_(reinterpret_cast<Code*>(warp.at(slot))) {}
  Value operator[](int lane) const { return std::bit_cast<Value>(codes_[lane]); }
  void set(int lane, Value value) { codes_[lane] = std::bit_cast<Code>(value); }

 private:
  Code* codes_;
};

/// A predicate.
template <>
class Lanes<bool> {
 public:
  Lanes(Warp& warp, Slot slot) : mask_(warp.predicate(slot)) {}
  bool operator[](int lane) const { return mask_ >> lane & 1; }
  void set(int lane, bool value) { mask_ = (mask_ & ~(Mask{1} << lane)) | Mask{value} << lane; }

 private:
  Mask& mask_;
};

/// Applies a function of one lane's values to all lanes: at[0] = function(at[1], at[2], ...). It may ask for the
/// modifiers by its first parameter.
template <auto function, typename = decltype(function)>
struct Map;

template <auto function, typename Result, typename... Operands>
struct Map<function, Result (*)(Operands...)> {
  static void execute(Warp& warp, const Instruction& instruction, Mask mask) {
    execute(warp, instruction, mask, std::index_sequence_for<Operands...>{});
  }

 private:
  template <std::size_t... i>
  static void execute(Warp& warp, const Instruction& instruction, Mask mask, std::index_sequence<i...>) {
    Lanes<Result> result(warp, instruction.at[0]);
    const std::tuple<Lanes<Operands>...> operands{Lanes<Operands>(warp, instruction.at[i + 1])...};
    for_lanes(mask, [&](int lane) { result.set(lane, function(std::get<i>(operands)[lane]...)); });
  }
};

template <auto function, typename Result, typename... Operands>
struct Map<function, Result (*)(const Modifiers&, Operands...)> {
  static void execute(Warp& warp, const Instruction& instruction, Mask mask) {
    execute(warp, instruction, mask, std::index_sequence_for<Operands...>{});
  }

 private:
  template <std::size_t... i>
  static void execute(Warp& warp, const Instruction& instruction, Mask mask, std::index_sequence<i...>) {
    Lanes<Result> result(warp, instruction.at[0]);
    const std::tuple<Lanes<Operands>...> operands{Lanes<Operands>(warp, instruction.at[i + 1])...};
    const Modifiers& modifiers = instruction.modifiers;
    for_lanes(mask, [&](int lane) { result.set(lane, function(modifiers, std::get<i>(operands)[lane]...)); });
  }
};

inline void do_nothing(Warp&, const Instruction&, Mask) {}
inline bool opposite(bool a) {
  return !a;
}

template <auto function>
inline constexpr Handler map = &Map<function>::execute;

}  // namespace emulator
