/// shfl.sync, vote.sync, match.sync, redux.sync, activemask, elect.sync, bar.warp.sync.

#include <array>

#include "tests/emulator/builder.h"
#include "tests/emulator/registers.h"
#include "tests/emulator/rendezvous.h"
#include "tests/emulator/select.h"

namespace emulator {

namespace {

/// Waits until `lanes` of the warp have come here.
Mask waiting_for(Warp& warp, Mask lanes, Mask wanted) {
  return wanted & warp.live & ~lanes;
}

/// Those that wait at the same place already are woken instead, to try it together.
void keep_waiting(Warp& warp, Mask lanes) {
  if (lanes == 0) return;
  warp.jump(lanes, warp.place - 1);
  Mask others = 0;
  for_lanes(warp.at_rendezvous, [&](int lane) {
    if (warp.lane_place[static_cast<std::size_t>(lane)] == warp.place - 1) others |= Mask{1} << lane;
  });
  if (others != 0)
    warp.at_rendezvous &= ~others;
  else
    warp.at_rendezvous |= lanes;
}

enum class Shuffle { up, down, bfly, idx };

/// The lane that `lane` reads, and whether it is in range (PTX ISA, "shfl.sync").
struct ShuffleSource {
  int lane;
  bool in_range;
};
ShuffleSource shuffle_source(Shuffle mode, int lane, std::uint32_t b, std::uint32_t c) {
  const int b_value = static_cast<int>(b & 0x1f), clamp = static_cast<int>(c & 0x1f);
  const int segment = static_cast<int>(c >> 8 & 0x1f);
  const int max_lane = (lane & segment) | (clamp & ~segment), min_lane = lane & segment;
  int from = 0;
  bool in_range = false;
  switch (mode) {
    case Shuffle::up:
      from = lane - b_value;
      in_range = from >= max_lane;
      break;
    case Shuffle::down:
      from = lane + b_value;
      in_range = from <= max_lane;
      break;
    case Shuffle::bfly:
      from = lane ^ b_value;
      in_range = from <= max_lane;
      break;
    case Shuffle::idx:
      from = min_lane | (b_value & ~segment);
      in_range = from <= max_lane;
      break;
  }
  return {in_range ? from : lane, in_range};
}

/// at: d, a, b, c, members; vectors[0]: p or nothing; immediate: the mode.
void shuffle(Warp& warp, const Instruction& instruction, Mask mask) {
  mask = rendezvous(warp, instruction.at[4], mask);
  std::array<std::uint32_t, warp_size> values;
  const Lanes<std::uint32_t> a(warp, instruction.at[1]), b(warp, instruction.at[2]),
      c(warp, instruction.at[3]);
  const Lanes<std::uint32_t> members(warp, instruction.at[4]);
  for (int lane = 0; lane < warp_size; ++lane) values[static_cast<std::size_t>(lane)] = a[lane];
  Lanes<std::uint32_t> result(warp, instruction.at[0]);
  for_lanes(mask, [&](int lane) {
    const ShuffleSource source =
        shuffle_source(static_cast<Shuffle>(instruction.immediate), lane, b[lane], c[lane]);
    if (!(mask >> source.lane & members[lane] >> source.lane & 1))
      throw Fault(FaultKind::launch_failure, "lane " + std::to_string(lane) + " reads from lane " +
                                                 std::to_string(source.lane) + ", which does not take part");
    result.set(lane, values[static_cast<std::size_t>(source.lane)]);
    if (!instruction.vectors.empty()) Lanes<bool>(warp, instruction.vectors[0]).set(lane, source.in_range);
  });
}

Handler build_shfl(Builder& builder) {
  constexpr std::array<std::string_view, 4> modes{"up", "down", "bfly", "idx"};
  if (!builder.opcode.take("sync")) builder.refuse("shfl without .sync does not exist on this device");
  const auto mode = builder.opcode.take_one_of(modes);
  builder.opcode.take_type();
  builder.opcode.finish();
  if (!mode) builder.refuse("the emulator does not know this mode of shfl");
  builder.out.immediate = static_cast<std::int64_t>(*mode);
  builder.out.at = {builder.destination(0, Type::b32), builder.source(1, Type::b32),
                    builder.source(2, Type::b32), builder.source(3, Type::b32), builder.source(4, Type::b32)};
  if (const std::string_view name = builder.operand(0).second; !name.empty())
    builder.out.vectors = {
        builder.destination(Operand{.kind = Operand::Kind::name, .name = name}, Type::pred)};
  return &shuffle;
}

enum class Vote { all, any, uni, ballot };

/// at: d, a, members.
template <Vote mode>
void vote(Warp& warp, const Instruction& instruction, Mask mask) {
  mask = rendezvous(warp, instruction.at[2], mask);
  const Mask votes = warp.predicate(instruction.at[1]);
  const Lanes<std::uint32_t> members(warp, instruction.at[2]);
  const auto outcome = [&](int lane) -> Mask {
    const Mask electors = members[lane] & mask, yes = votes & electors;
    if (mode == Vote::all) return yes == electors;
    if (mode == Vote::any) return yes != 0;
    return mode == Vote::uni ? yes == electors || yes == 0 : yes;
  };
  std::array<Mask, warp_size> outcomes{};
  for_lanes(mask, [&](int lane) { outcomes[static_cast<std::size_t>(lane)] = outcome(lane); });
  for_lanes(mask, [&](int lane) {
    const Mask value = outcomes[static_cast<std::size_t>(lane)];
    if (mode == Vote::ballot)
      Lanes<std::uint32_t>(warp, instruction.at[0]).set(lane, value);
    else
      Lanes<bool>(warp, instruction.at[0]).set(lane, value != 0);
  });
}

Handler build_vote(Builder& builder) {
  constexpr std::array<std::string_view, 4> modes{"all", "any", "uni", "ballot"};
  constexpr std::array<Handler, 4> handlers{&vote<Vote::all>, &vote<Vote::any>, &vote<Vote::uni>,
                                            &vote<Vote::ballot>};
  if (!builder.opcode.take("sync")) builder.refuse("vote without .sync does not exist on this device");
  const auto mode = builder.opcode.take_one_of(modes);
  if (!mode) builder.refuse("the emulator does not know this mode of vote");
  builder.opcode.take_type();
  builder.operands({*mode == 3 ? Type::b32 : Type::pred, Type::pred, Type::b32});
  return handlers[*mode];
}

/// at: d, a, members; vectors[0]: p of match.all.
template <typename Value, bool all>
void match(Warp& warp, const Instruction& instruction, Mask mask) {
  mask = rendezvous(warp, instruction.at[2], mask);
  const Lanes<Value> a(warp, instruction.at[1]);
  const Lanes<std::uint32_t> members(warp, instruction.at[2]);
  std::array<Mask, warp_size> same{};
  for_lanes(mask, [&](int lane) {
    for_lanes(mask & members[lane], [&](int other) {
      if (a[other] == a[lane]) same[static_cast<std::size_t>(lane)] |= Mask{1} << other;
    });
  });
  for_lanes(mask, [&](int lane) {
    Mask value = same[static_cast<std::size_t>(lane)];
    const bool agree = value == (mask & members[lane]);
    if (all && !agree) value = 0;
    Lanes<std::uint32_t>(warp, instruction.at[0]).set(lane, value);
    if (!instruction.vectors.empty()) Lanes<bool>(warp, instruction.vectors[0]).set(lane, agree);
  });
}

Handler build_match(Builder& builder) {
  const bool all = builder.opcode.take("all");
  builder.opcode.ignore({"any", "sync"});
  const Type type = builder.opcode.take_type();
  builder.operands({Type::b32, type, Type::b32});
  if (const std::string_view name = builder.operand(0).second; !name.empty())
    builder.out.vectors = {
        builder.destination(Operand{.kind = Operand::Kind::name, .name = name}, Type::pred)};
  if (bytes_of(type) == 4) return all ? &match<std::uint32_t, true> : &match<std::uint32_t, false>;
  return all ? &match<std::uint64_t, true> : &match<std::uint64_t, false>;
}

template <typename Value>
using Combine = Value (*)(Value, Value);
template <typename Value>
Value sum(Value a, Value b) {
  return wrapped<Value>(as_wide(a) + as_wide(b));
}
template <typename Value>
Value lesser(Value a, Value b) {
  return std::min(a, b);
}
template <typename Value>
Value larger(Value a, Value b) {
  return std::max(a, b);
}
std::uint32_t both(std::uint32_t a, std::uint32_t b) {
  return a & b;
}
std::uint32_t either(std::uint32_t a, std::uint32_t b) {
  return a | b;
}
std::uint32_t different(std::uint32_t a, std::uint32_t b) {
  return a ^ b;
}

/// at: d, a, members.
template <typename Value, Combine<Value> combine>
void reduce(Warp& warp, const Instruction& instruction, Mask mask) {
  mask = rendezvous(warp, instruction.at[2], mask);
  const Lanes<Value> a(warp, instruction.at[1]);
  const Lanes<std::uint32_t> members(warp, instruction.at[2]);
  std::array<Value, warp_size> totals{};
  for_lanes(mask, [&](int lane) {
    const Mask group = mask & members[lane];
    Value total = a[std::countr_zero(group)];
    for_lanes(group & (group - 1), [&](int other) { total = combine(total, a[other]); });
    totals[static_cast<std::size_t>(lane)] = total;
  });
  for_lanes(mask, [&](int lane) {
    Lanes<Value>(warp, instruction.at[0]).set(lane, totals[static_cast<std::size_t>(lane)]);
  });
}

Handler build_redux(Builder& builder) {
  constexpr std::array<std::string_view, 6> operations{"add", "min", "max", "and", "or", "xor"};
  builder.opcode.ignore({"sync"});
  const auto operation = builder.opcode.take_one_of(operations);
  const Type type = builder.opcode.take_type();
  builder.operands({type, type, Type::b32});
  constexpr std::array<Handler, 6> of_unsigned{&reduce<std::uint32_t, sum<std::uint32_t>>,
                                               &reduce<std::uint32_t, lesser<std::uint32_t>>,
                                               &reduce<std::uint32_t, larger<std::uint32_t>>,
                                               &reduce<std::uint32_t, both>,
                                               &reduce<std::uint32_t, either>,
                                               &reduce<std::uint32_t, different>};
  constexpr std::array<Handler, 3> of_signed{&reduce<std::int32_t, sum<std::int32_t>>,
                                             &reduce<std::int32_t, lesser<std::int32_t>>,
                                             &reduce<std::int32_t, larger<std::int32_t>>};
  if (!operation || bytes_of(type) != 4 || type == Type::f32 || (type == Type::s32 && *operation > 2))
    builder.refuse("the emulator does not know this reduction");
  return type == Type::s32 ? of_signed[*operation] : of_unsigned[*operation];
}

void active_mask(Warp& warp, const Instruction& instruction, Mask mask) {
  Lanes<std::uint32_t> result(warp, instruction.at[0]);
  for_lanes(mask, [&](int lane) { result.set(lane, mask); });
}
Handler build_activemask(Builder& builder) {
  builder.opcode.take_type();
  builder.operands({Type::b32});
  return &active_mask;
}

/// at: d, members; vectors[0]: p. The lowest member is elected.
void elect(Warp& warp, const Instruction& instruction, Mask mask) {
  mask = rendezvous(warp, instruction.at[1], mask);
  const Lanes<std::uint32_t> members(warp, instruction.at[1]);
  for_lanes(mask, [&](int lane) {
    const int leader = std::countr_zero(members[lane] & mask);
    Lanes<std::uint32_t>(warp, instruction.at[0]).set(lane, static_cast<std::uint32_t>(leader));
    Lanes<bool>(warp, instruction.vectors[0]).set(lane, lane == leader);
  });
}
Handler build_elect(Builder& builder) {
  builder.opcode.ignore({"sync"});
  builder.opcode.finish();
  builder.out.at[0] = builder.operand(0).name == "_" ? builder.names.new_register(Type::b32)
                                                     : builder.destination(0, Type::b32);
  builder.out.at[1] = builder.source(1, Type::b32);
  builder.out.vectors = {builder.destination(
      Operand{.kind = Operand::Kind::name, .name = builder.operand(0).second}, Type::pred)};
  return &elect;
}

constexpr Row rows[] = {
    {"shfl", any_type, build_shfl},   {"vote", any_type, build_vote},
    {"match", any_type, build_match}, {"redux", any_type, build_redux},
    {"elect", any_type, build_elect}, {"activemask", any_type, build_activemask},
};

}  // namespace

Mask rendezvous(Warp& warp, Slot members, Mask mask) {
  const Lanes<std::uint32_t> wanted(warp, members);
  Mask ready = 0;
  for_lanes(mask, [&](int lane) {
    if (!(wanted[lane] >> lane & 1))
      throw Fault(FaultKind::launch_failure,
                  "lane " + std::to_string(lane) + " is not among the members of its own .sync instruction");
    if (waiting_for(warp, mask, wanted[lane]) == 0) ready |= Mask{1} << lane;
  });
  keep_waiting(warp, mask & ~ready);
  return ready;
}

Mask rendezvous_of_all(Warp& warp, Mask mask) {
  if (warp.live != ~Mask{0})
    throw Fault(FaultKind::launch_failure, "an instruction of whole warps is executed by a part of one");
  if (mask == ~Mask{0}) return mask;
  keep_waiting(warp, mask);
  return 0;
}

std::span<const Row> warp_rows() {
  return rows;
}

}  // namespace emulator
