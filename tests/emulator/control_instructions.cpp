/// Branches, calls, barriers and fences.

#include "tests/emulator/builder.h"
#include "tests/emulator/rendezvous.h"
#include "tests/emulator/select.h"

namespace emulator {

namespace {

void go(Warp& warp, Mask lanes, std::uint32_t target) {
  if (lanes == warp.active)
    warp.place = target;
  else
    warp.jump(lanes, target);
}

void branch(Warp& warp, const Instruction& instruction, Mask mask) {
  go(warp, mask, static_cast<std::uint32_t>(instruction.immediate));
}

Handler build_bra(Builder& builder) {
  builder.opcode.ignore({"uni"});
  builder.opcode.finish();
  builder.names.jump_to(builder.operand(0).name);
  return &branch;
}

/// at: index; immediate: the list of targets.
void indexed_branch(Warp& warp, const Instruction& instruction, Mask mask) {
  const auto& targets =
      warp.block.launch.program.branch_targets[static_cast<std::size_t>(instruction.immediate)];
  const Lanes<std::uint32_t> index(warp, instruction.at[0]);
  warp.jump(0, warp.place);
  for_lanes(mask, [&](int lane) {
    if (index[lane] >= targets.size())
      throw Fault(FaultKind::launch_failure, "brx.idx " + std::to_string(index[lane]) + " of " +
                                                 std::to_string(targets.size()) + " targets");
    warp.lane_place[static_cast<std::size_t>(lane)] = targets[index[lane]];
  });
}

Handler build_brx(Builder& builder) {
  builder.opcode.ignore({"idx", "uni"});
  builder.opcode.finish();
  builder.out.at[0] = builder.source(0, Type::u32);
  builder.out.immediate = builder.names.branch_targets_of(builder.operand(1).name);
  return &indexed_branch;
}

void copy_local(Warp& warp, std::size_t copies, Mask mask) {
  for (const LocalCopy& copy : warp.block.launch.program.copies[copies])
    for_lanes(mask, [&](int lane) {
      std::byte* local = warp.block.local_of(warp, lane);
      std::memcpy(local + copy.to, local + copy.from, copy.size);
    });
}

void call(Warp& warp, const Instruction& instruction, Mask mask) {
  copy_local(warp, instruction.at[0], mask);
  for_lanes(mask,
            [&](int lane) { warp.return_places[static_cast<std::size_t>(lane)].push_back(warp.place); });
  warp.jump(mask, static_cast<std::uint32_t>(instruction.immediate));
}
void fetch_results(Warp& warp, const Instruction& instruction, Mask mask) {
  copy_local(warp, instruction.at[0], mask);
}
void fail_assertion(Warp&, const Instruction&, Mask) {
  throw Fault(FaultKind::launch_failure, "an assertion does not hold");
}

Handler build_call(Builder& builder) {
  builder.opcode.ignore({"uni"});
  builder.opcode.finish();
  const auto& operands = builder.statement.operands;
  const std::size_t name = operands.at(0).kind == Operand::Kind::list ? 1 : 0;
  const std::span<const Operand> none;
  const auto results = name == 1 ? std::span<const Operand>(operands[0].elements) : none;
  const auto arguments =
      operands.size() > name + 1 ? std::span<const Operand>(operands[name + 1].elements) : none;
  const std::string_view function = builder.operand(name).name;
  if (function == "__assertfail") return &fail_assertion;
  const Names::Call call_of = builder.names.call(function, arguments, results);
  builder.out.at[0] = call_of.arguments;
  builder.names.emit_after({.execute = &fetch_results, .at = {call_of.results}});
  return &call;
}

void return_or_exit(Warp& warp, const Instruction&, Mask mask) {
  warp.jump(0, warp.place);
  Mask done = 0;
  for_lanes(mask, [&](int lane) {
    auto& places = warp.return_places[static_cast<std::size_t>(lane)];
    if (places.empty()) {
      done |= Mask{1} << lane;
    } else {
      warp.lane_place[static_cast<std::size_t>(lane)] = places.back();
      places.pop_back();
    }
  });
  if (done != 0) warp.exit(done);
}
Handler build_ret(Builder& builder) {
  builder.opcode.ignore({"uni"});
  builder.opcode.finish();
  return &return_or_exit;
}

void exit_threads(Warp& warp, const Instruction&, Mask mask) {
  warp.jump(0, warp.place);
  warp.exit(mask);
}
Handler build_exit(Builder&) {
  return &exit_threads;
}

void trap(Warp&, const Instruction&, Mask) {
  throw Fault(FaultKind::launch_failure, "trap");
}
Handler build_trap(Builder&) {
  return &trap;
}

/// at: barrier, threads or nothing. The lanes are counted one by one.
NamedBarrier& arrive(Warp& warp, const Instruction& instruction, Mask mask) {
  const std::uint32_t number = Lanes<std::uint32_t>(warp, instruction.at[0])[std::countr_zero(mask)];
  if (number >= warp.block.barriers.size())
    throw Fault(FaultKind::launch_failure, "barrier " + std::to_string(number) + " of 16");
  NamedBarrier& barrier = warp.block.barriers[number];
  barrier.arrived += static_cast<std::uint64_t>(std::popcount(mask));
  if (instruction.at[1] != no_slot)
    barrier.expected = Lanes<std::uint32_t>(warp, instruction.at[1])[std::countr_zero(mask)];
  return barrier;
}

void wait_at(Warp& warp, NamedBarrier& barrier, Mask mask) {
  const auto number = static_cast<std::size_t>(&barrier - warp.block.barriers.data());
  for_lanes(mask, [&](int lane) {
    warp.barrier[static_cast<std::size_t>(lane)] = static_cast<std::uint8_t>(number);
  });
  warp.jump(0, warp.place);
  warp.at_barrier |= mask;
  warp.block.check_barrier(number);
}

void barrier_sync(Warp& warp, const Instruction& instruction, Mask mask) {
  wait_at(warp, arrive(warp, instruction, mask), mask);
}

void barrier_arrive(Warp& warp, const Instruction& instruction, Mask mask) {
  NamedBarrier& barrier = arrive(warp, instruction, mask);
  warp.block.check_barrier(static_cast<std::size_t>(&barrier - warp.block.barriers.data()));
}

/// at[3]: the predicate that is counted. The result is fetched by the instruction behind.
void barrier_reduce(Warp& warp, const Instruction& instruction, Mask mask) {
  NamedBarrier& barrier = arrive(warp, instruction, mask);
  barrier.votes += static_cast<std::uint32_t>(std::popcount(warp.predicate(instruction.at[3]) & mask));
  wait_at(warp, barrier, mask);
}

enum class Reduction { popc, all, any };

/// at: barrier, unused, result.
template <Reduction reduction>
void fetch_reduction(Warp& warp, const Instruction& instruction, Mask mask) {
  for_lanes(mask, [&](int lane) {
    const NamedBarrier& barrier = warp.block.barriers[Lanes<std::uint32_t>(warp, instruction.at[0])[lane]];
    if (reduction == Reduction::popc)
      Lanes<std::uint32_t>(warp, instruction.at[2]).set(lane, barrier.last_votes);
    else
      Lanes<bool>(warp, instruction.at[2])
          .set(lane, reduction == Reduction::any ? barrier.last_votes != 0
                                                 : barrier.last_votes == barrier.last_arrived);
  });
}

void warp_sync(Warp& warp, const Instruction& instruction, Mask mask) {
  rendezvous(warp, instruction.at[0], mask);
}

Handler build_reduction(Builder& builder) {
  Opcode& opcode = builder.opcode;
  const bool count = opcode.take("popc"), all = opcode.take("and");
  opcode.ignore({"or"});
  opcode.take_type();
  opcode.finish();
  const std::size_t last = builder.operand_count() - 1;
  Instruction& out = builder.out;
  out.at[0] = builder.source(1, Type::b32);
  if (last == 3) out.at[1] = builder.source(2, Type::b32);
  out.at[2] = builder.destination(0, count ? Type::u32 : Type::pred);
  out.at[3] = builder.source(last, Type::pred);
  builder.names.emit_after({.execute = count ? &fetch_reduction<Reduction::popc>
                                       : all ? &fetch_reduction<Reduction::all>
                                             : &fetch_reduction<Reduction::any>,
                            .at = out.at});
  return &barrier_reduce;
}

Handler build_bar(Builder& builder) {
  Opcode& opcode = builder.opcode;
  Instruction& out = builder.out;
  if (opcode.take("warp")) {
    opcode.ignore({"sync"});
    opcode.finish();
    out.at[0] = builder.source(0, Type::b32);
    return &warp_sync;
  }
  // bar is barrier.aligned
  out.modifiers.aligned = opcode.take("aligned") || opcode.base() == "bar";
  opcode.ignore({"cta"});
  if (opcode.take("red")) return build_reduction(builder);
  const bool arrives = opcode.take("arrive");
  opcode.ignore({"sync"});
  opcode.finish();
  out.at[0] = builder.source(0, Type::b32);
  if (builder.operand_count() > 1) out.at[1] = builder.source(1, Type::b32);
  return arrives ? &barrier_arrive : &barrier_sync;
}

void proxy_fence(Warp& warp, const Instruction&, Mask) {
  warp.block.shared.pass_proxy_fence(warp.index);
}

/// One thread after the other does everything in order: only the fence between proxies has something to do.
Handler build_fence(Builder& builder) {
  const bool proxy = builder.opcode.take("proxy");
  const bool asynchronous = builder.opcode.take("async");
  builder.opcode.ignore({"sc", "acq_rel", "acquire", "release", "cta", "cluster", "gpu", "gl", "sys",
                         "global", "shared::cta", "shared::cluster"});
  builder.opcode.finish();
  return proxy && asynchronous ? &proxy_fence : &do_nothing;
}
Handler build_nothing(Builder&) {
  return &do_nothing;
}

constexpr Row rows[] = {
    {"bra", any_type, build_bra},           {"brx", any_type, build_brx},
    {"call", any_type, build_call},         {"ret", any_type, build_ret},
    {"exit", any_type, build_exit},         {"trap", any_type, build_trap},
    {"bar", any_type, build_bar},           {"barrier", any_type, build_bar},
    {"membar", any_type, build_fence},      {"fence", any_type, build_fence},
    {"nanosleep", any_type, build_nothing}, {"setmaxnreg", any_type, build_nothing},
};

}  // namespace

std::span<const Row> control_rows() {
  return rows;
}

}  // namespace emulator
