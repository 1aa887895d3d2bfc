/// cp.async and its groups. Between issue and the wait that covers it the destination holds poison, so that reading
/// it too early shows, as does issuing the copy while the old contents are still needed.

#include <algorithm>
#include <array>

#include "tests/emulator/builder.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/spaces.h"

namespace emulator {

struct AsynchronousCopies {
  struct Copy {
    std::uint64_t group;
    std::uint64_t address;  ///< in shared memory
    std::uint64_t size;
    std::array<std::byte, 16> bytes;
  };
  struct OfLane {
    std::uint64_t committed = 0;
    std::vector<Copy> pending;
  };
  std::array<OfLane, warp_size> lanes;
};

namespace {

AsynchronousCopies& copies_of(Warp& warp) {
  if (warp.copies == nullptr) warp.copies = std::make_shared<AsynchronousCopies>();
  return *warp.copies;
}

std::uint64_t shared_address(std::uint64_t address) {
  return address & 0xffff'ffff;
}

/// at: destination, source, bytes to read (fewer leave zeros); immediate: bytes to write; vectors: the two offsets.
void copy(Warp& warp, const Instruction& instruction, Mask mask) {
  const auto size = static_cast<std::uint64_t>(instruction.immediate);
  const Lanes<std::uint64_t> to(warp, instruction.at[0]), from(warp, instruction.at[1]);
  const Lanes<std::uint32_t> read_size(warp, instruction.at[2]);
  for_lanes(mask, [&](int lane) {
    auto& of_lane = copies_of(warp).lanes[static_cast<std::size_t>(lane)];
    AsynchronousCopies::Copy copy{.group = of_lane.committed,
                                  .address = shared_address(to[lane] + instruction.vectors[0]),
                                  .size = size,
                                  .bytes = {}};
    const std::uint64_t read = read_size[lane], source = from[lane] + instruction.vectors[1];
    if (read > size) throw Fault(FaultKind::launch_failure, "cp.async reads more bytes than it writes");
    if (source % size != 0)
      throw Fault(FaultKind::misaligned_address, "the source of cp.async is not a multiple of its size");
    for (std::uint64_t i = 0; i < read; ++i)
      copy.bytes[i] = *access_memory(warp, lane, Space::global, source + i, 1, reading);
    std::memset(access_memory(warp, lane, Space::shared, copy.address, size, writing),
                static_cast<int>(poison), size);
    of_lane.pending.push_back(copy);
  });
}

void finish_copies(Warp& warp, int lane, std::uint64_t first_unfinished_group) {
  auto& pending = copies_of(warp).lanes[static_cast<std::size_t>(lane)].pending;
  for (const AsynchronousCopies::Copy& copy : pending) {
    if (copy.group < first_unfinished_group)
      std::memcpy(access_memory(warp, lane, Space::shared, copy.address, copy.size, writing),
                  copy.bytes.data(), copy.size);
  }
  std::erase_if(pending, [&](const auto& copy) { return copy.group < first_unfinished_group; });
}

void commit(Warp& warp, const Instruction&, Mask mask) {
  for_lanes(mask, [&](int lane) { ++copies_of(warp).lanes[static_cast<std::size_t>(lane)].committed; });
}

/// immediate: how many groups may be pending.
void wait_for_groups(Warp& warp, const Instruction& instruction, Mask mask) {
  const auto allowed = static_cast<std::uint64_t>(instruction.immediate);
  for_lanes(mask, [&](int lane) {
    const std::uint64_t committed = copies_of(warp).lanes[static_cast<std::size_t>(lane)].committed;
    finish_copies(warp, lane, committed - std::min(committed, allowed));
  });
}
void wait_for_all(Warp& warp, const Instruction&, Mask mask) {
  for_lanes(mask, [&](int lane) { finish_copies(warp, lane, ~std::uint64_t{0}); });
}

std::uint32_t unless_ignored(std::uint32_t size, bool ignored) {
  return ignored ? 0 : size;
}

Slot read_size(Builder& builder, std::int64_t size) {
  const Slot whole = builder.names.constant(4, static_cast<std::uint64_t>(size));
  if (builder.operand_count() < 4) return whole;
  const Operand& operand = builder.operand(3);
  const auto found =
      operand.kind == Operand::Kind::name ? builder.names.find_register(operand.name) : std::nullopt;
  if (!found || found->type != Type::pred) return builder.source(3, Type::b32);
  const Slot result = builder.names.new_register(Type::b32);
  builder.names.emit_before(
      {.execute = map<&unless_ignored>, .at = {result, whole, builder.source(3, Type::pred)}});
  return result;
}

Handler build_copy(Builder& builder) {
  Opcode& opcode = builder.opcode;
  const bool whole_lines = opcode.take("cg");
  opcode.ignore({"ca", "shared", "shared::cta", "global", "L2::64B", "L2::128B", "L2::256B"});
  opcode.finish();
  Instruction& out = builder.out;
  const std::int64_t size = builder.operand(2).value;
  if (size != 16 && (whole_lines || (size != 4 && size != 8)))
    builder.refuse("cp.async copies 4, 8 or 16 bytes");
  builder.address(0, 0);
  const std::int64_t to_offset = out.immediate;
  builder.address(1, 1);
  out.vectors = {static_cast<Slot>(to_offset), static_cast<Slot>(out.immediate)};
  out.immediate = size;
  out.at[2] = read_size(builder, size);
  return &copy;
}

Handler build_cp(Builder& builder) {
  Opcode& opcode = builder.opcode;
  if (!opcode.take("async")) builder.refuse("the emulator does not know this instruction");
  if (opcode.take("commit_group")) {
    opcode.finish();
    return &commit;
  }
  if (opcode.take("wait_all")) {
    opcode.finish();
    return &wait_for_all;
  }
  if (opcode.take("wait_group")) {
    opcode.finish();
    builder.out.immediate = builder.operand(0).value;
    return &wait_for_groups;
  }
  return build_copy(builder);
}

constexpr Row rows[] = {{"cp", any_type, build_cp}};

}  // namespace

std::span<const Row> asynchronous_copy_rows() {
  return rows;
}

}  // namespace emulator
