#include <algorithm>

#include "tests/emulator/memory.h"
#include "tests/emulator/warp.h"

namespace emulator {

namespace {

/// Instructions that a warp executes before others have their turn, so that a thread may wait for another's store.
constexpr int slice = 1 << 16;

constexpr std::uint32_t no_limit = ~0u;

std::uint32_t as_32_bits(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}

/// What the special register holds in a thread.
std::uint64_t special_value(const Block& block, Special special, std::uint32_t warp, std::uint32_t lane) {
  const Dimensions& threads = block.launch.threads;
  const Dimensions& blocks = block.launch.blocks;
  const std::uint32_t thread = warp * warp_size + lane;
  switch (special) {
    case Special::tid_x:
      return thread % threads.x;
    case Special::tid_y:
      return thread / threads.x % threads.y;
    case Special::tid_z:
      return thread / threads.x / threads.y;
    case Special::ntid_x:
      return threads.x;
    case Special::ntid_y:
      return threads.y;
    case Special::ntid_z:
      return threads.z;
    case Special::ctaid_x:
      return block.index.x;
    case Special::ctaid_y:
      return block.index.y;
    case Special::ctaid_z:
      return block.index.z;
    case Special::nctaid_x:
      return blocks.x;
    case Special::nctaid_y:
      return blocks.y;
    case Special::nctaid_z:
      return blocks.z;
    case Special::laneid:
      return lane;
    case Special::warpid:
      return warp;
    case Special::nwarpid:
      return 64;
    case Special::nsmid:
      return 1;
    case Special::lanemask_eq:
      return Mask{1} << lane;
    case Special::lanemask_le:
      return as_32_bits((std::uint64_t{2} << lane) - 1);
    case Special::lanemask_lt:
      return (Mask{1} << lane) - 1;
    case Special::lanemask_ge:
      return as_32_bits(~((std::uint64_t{1} << lane) - 1));
    case Special::lanemask_gt:
      return as_32_bits(~((std::uint64_t{2} << lane) - 1));
    case Special::dynamic_smem_size:
      return block.launch.dynamic_shared_bytes;
    case Special::total_smem_size:
      return block.shared.size();
    default:  // %smid, %gridid
      return 0;
  }
}

void fill(Warp& warp, Slot slot, int bytes, std::uint64_t bits) {
  for (int lane = 0; lane < warp_size; ++lane)
    std::memcpy(warp.at(slot) + lane * bytes, &bits, static_cast<std::size_t>(bytes));
}

bool is_wide(Special special) {
  return special == Special::gridid;
}

void fill_registers(Warp& warp) {
  const Program& program = warp.block.launch.program;
  std::memset(warp.registers.data(), static_cast<int>(poison), program.register_bytes);
  for (const Constant& constant : program.constants) {
    if (constant.bytes < 0)
      warp.predicate(constant.slot) = as_32_bits(constant.bits);
    else
      fill(warp, constant.slot, constant.bytes, constant.bits);
  }
  for (const SpecialRegister& reg : program.specials) {
    for (int lane = 0; lane < warp_size; ++lane) {
      const std::uint64_t value = special_value(
          warp.block, reg.special, static_cast<std::uint32_t>(warp.index), static_cast<std::uint32_t>(lane));
      if (is_wide(reg.special))
        Lanes<std::uint64_t>(warp, reg.slot).set(lane, value);
      else
        Lanes<std::uint32_t>(warp, reg.slot).set(lane, as_32_bits(value));
    }
  }
}

std::string describe(const Warp& warp) {
  const Block& block = warp.block;
  return "kernel " + block.launch.program.name + ", block (" + std::to_string(block.index.x) + ", " +
         std::to_string(block.index.y) + ", " + std::to_string(block.index.z) + "), warp " +
         std::to_string(warp.index);
}

/// An instruction's text for a message: on one line, and no more than fits there.
std::string one_line(std::string_view text) {
  constexpr std::size_t longest = 100;
  std::string result;
  for (const char c : text) {
    const bool blank = c == '\n' || c == '\t' || c == ' ';
    if (!blank)
      result += c;
    else if (!result.empty() && result.back() != ' ')
      result += ' ';
  }
  if (result.size() > longest) result.replace(longest, std::string::npos, " ...");
  return result;
}

}  // namespace

Warp::Warp(Block& block, int index, int threads)
    : block(block),
      index(index),
      registers((block.launch.program.register_bytes + 7) / 8),
      live(threads >= warp_size ? ~Mask{0} : (Mask{1} << threads) - 1) {
  fill_registers(*this);
}

const Instruction& Warp::current() const {
  return block.launch.program.code[place - 1];
}

void Warp::jump(Mask lanes, std::uint32_t target) {
  for_lanes(active, [&](int lane) {
    lane_place[static_cast<std::size_t>(lane)] = lanes >> lane & 1 ? target : place;
  });
  regroup = true;
}

void Warp::exit(Mask lanes) {
  live &= ~lanes;
  block.live_threads -= static_cast<std::uint64_t>(std::popcount(lanes));
  regroup = true;
  for (std::size_t number = 0; number < block.barriers.size(); ++number) block.check_barrier(number);
}

bool Warp::choose_lanes() {
  const Mask candidates = live & ~at_barrier & ~at_rendezvous;
  if (candidates == 0) return false;
  // Deeper calls first, then lower places; the other way round for lanes that have waited for a slice.
  const auto key = [&](int lane) {
    const auto i = static_cast<std::size_t>(lane);
    const std::uint64_t order = (~std::uint64_t{return_places[i].size()} << 32) | lane_place[i];
    return others_first_ ? ~order : order;
  };
  std::uint64_t best = ~std::uint64_t{0};
  for_lanes(candidates, [&](int lane) { best = std::min(best, key(lane)); });
  active = 0;
  limit_ = no_limit;
  for_lanes(live & ~at_barrier, [&](int lane) {
    if (key(lane) == best)
      active |= Mask{1} << lane;
    else if (!others_first_ && !(at_rendezvous >> lane & 1) && (key(lane) ^ best) >> 32 == 0)
      limit_ = std::min(limit_, lane_place[static_cast<std::size_t>(lane)]);
  });
  at_rendezvous &= ~active;
  place = lane_place[static_cast<std::size_t>(std::countr_zero(active))];
  regroup = false;
  return true;
}

bool Warp::run() {
  const std::vector<Instruction>& code = block.launch.program.code;
  if (!choose_lanes()) return false;
  for (int left = slice; left > 0; --left) {
    const Instruction& instruction = code[place++];
    Mask mask = active;
    if (instruction.guard != no_slot) {
      const Mask guard = predicate(instruction.guard);
      mask &= instruction.guard_negated ? ~guard : guard;
    }
    block.executed += static_cast<std::uint64_t>(std::popcount(mask));
    if (mask != 0) instruction.execute(*this, instruction, mask);
    if (!regroup && place >= limit_) jump(0, place);
    if (regroup && !choose_lanes()) return true;
  }
  jump(0, place);
  others_first_ = !others_first_ && active != (live & ~at_barrier & ~at_rendezvous);
  return true;
}

Block::Block(const Launch& launch, Dimensions index)
    : launch(launch),
      index(index),
      shared(launch.program.static_shared_bytes + launch.dynamic_shared_bytes),
      local(launch.threads.count() * launch.program.local_bytes + 32 * launch.program.local_bytes, poison),
      live_threads(launch.threads.count()) {
  const auto threads = static_cast<int>(launch.threads.count());
  for (int first = 0; first < threads; first += warp_size)
    warps.push_back(std::make_unique<Warp>(*this, first / warp_size, threads - first));
}

void Block::check_barrier(std::size_t number) {
  NamedBarrier& barrier = barriers[number];
  const std::uint64_t expected = barrier.expected != 0 ? barrier.expected : live_threads;
  if (barrier.arrived == 0 || barrier.arrived < expected) return;
  for (const auto& warp : warps) {
    Mask here = 0, aligned = 0;
    std::uint32_t place = no_limit;
    for_lanes(warp->at_barrier, [&](int lane) {
      const auto i = static_cast<std::size_t>(lane);
      if (warp->barrier[i] != number) return;
      here |= Mask{1} << lane;
      if (!launch.program.code[warp->lane_place[i] - 1].modifiers.aligned) return;
      aligned |= Mask{1} << lane;
      if (place != no_limit && place != warp->lane_place[i])
        throw Fault(FaultKind::launch_failure, "lanes of a warp wait for barrier " + std::to_string(number) +
                                                   " in different instructions");
      place = warp->lane_place[i];
    });
    if (aligned != 0 && here != warp->live)
      throw Fault(FaultKind::launch_failure,
                  "only a part of a warp waits for barrier " + std::to_string(number));
    warp->at_barrier &= ~here;
  }
  barrier = {.last_arrived = barrier.arrived, .last_votes = barrier.votes};
  shared.pass_barrier();
}

void Block::run() {
  bool progress = true;
  while (live_threads != 0) {
    if (!progress)
      throw Fault(FaultKind::launch_failure, "kernel " + launch.program.name + ": " +
                                                 std::to_string(live_threads) +
                                                 " threads wait for others that never come to the barrier");
    progress = false;
    for (const auto& warp : warps) {
      try {
        if (warp->run()) progress = true;
      } catch (const Fault& fault) {
        throw Fault(fault.kind,
                    describe(*warp) + ", \"" + one_line(warp->current().text) + "\": " + fault.what());
      }
    }
  }
}

}  // namespace emulator
