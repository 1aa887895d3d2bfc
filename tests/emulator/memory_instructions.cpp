/// ld and st in all spaces, one value or a vector a lane.

#include <array>

#include "tests/emulator/builder.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/registers.h"
#include "tests/emulator/spaces.h"

namespace emulator {

namespace {

// at[0]: address; at[1] ...: unused; vectors: slot and bytes of each register in turn; at[4]: the bytes of a value,
// with the highest bit set where loads extend the sign.

struct Transfer {
  explicit Transfer(const Instruction& instruction)
      : instruction(instruction),
        value_bytes(instruction.at[4] & 0xff),
        is_signed(instruction.at[4] >> 31 != 0),
        count(instruction.vectors.size() / 2),
        size(value_bytes * count),
        access{.atomic = instruction.modifiers.atomic} {}

  const Instruction& instruction;
  std::uint32_t value_bytes;
  bool is_signed;
  std::size_t count;
  std::uint64_t size;
  Access access;

  RegisterView reg(Warp& warp, std::size_t i) const {
    return {warp, instruction.vectors[2 * i], instruction.vectors[2 * i + 1]};
  }
  std::byte* bytes(Warp& warp, int lane) const {
    const std::uint64_t base = Lanes<std::uint64_t>(warp, instruction.at[0])[lane];
    return access_memory(warp, lane, instruction.space,
                         base + static_cast<std::uint64_t>(instruction.immediate), size, access);
  }
};

std::uint64_t read_value(const std::byte* bytes, std::uint32_t size, bool is_signed) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, size);
  const std::uint32_t unused = 64 - 8 * size;
  return is_signed && unused != 0
             ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused)
             : value;
}

void load(Warp& warp, const Instruction& instruction, Mask mask) {
  const Transfer transfer(instruction);
  for_lanes(mask, [&](int lane) {
    const std::byte* bytes = transfer.bytes(warp, lane);
    for (std::size_t i = 0; i < transfer.count; ++i)
      transfer.reg(warp, i).set(
          lane, read_value(bytes + i * transfer.value_bytes, transfer.value_bytes, transfer.is_signed));
  });
}

void store(Warp& warp, const Instruction& instruction, Mask mask) {
  Transfer transfer(instruction);
  transfer.access.writes = true;
  for_lanes(mask, [&](int lane) {
    std::byte* bytes = transfer.bytes(warp, lane);
    for (std::size_t i = 0; i < transfer.count; ++i) {
      const std::uint64_t value = transfer.reg(warp, i).get(lane);
      std::memcpy(bytes + i * transfer.value_bytes, &value, transfer.value_bytes);
    }
  });
}

void prepare(Builder& builder, std::size_t address, std::size_t value, bool is_load) {
  Instruction& out = builder.out;
  out.modifiers.atomic = take_ordering(builder.opcode);
  out.space = take_space(builder.opcode);
  builder.opcode.ignore({"nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "unified", "L1::evict_normal",
                         "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate",
                         "L2::64B", "L2::128B", "L2::256B"});
  std::size_t count = 1;
  if (builder.opcode.take("v2")) count = 2;
  if (builder.opcode.take("v4")) count = 4;
  if (builder.opcode.take("v8")) count = 8;
  const Type type = builder.opcode.take_type();
  builder.opcode.finish();
  if (const auto space = builder.address(address, 0)) out.space = *space;
  const Operand& whole = builder.operand(value);
  const std::vector<Operand> single{whole};
  const std::vector<Operand>& elements = count > 1 ? whole.elements : single;
  if (elements.size() != count) builder.refuse(std::to_string(count) + " registers are expected");
  for (const Operand& element : elements) {
    const WideRegister reg =
        is_load ? wide_destination(builder, element, type) : wide_source(builder, element, type);
    out.vectors.insert(out.vectors.end(), {reg.slot, reg.bytes});
  }
  out.at[4] = static_cast<Slot>(bytes_of(type)) | (is_signed(type) ? 0x80000000u : 0u);
}

Handler build_ld(Builder& builder) {
  prepare(builder, 1, 0, true);
  return &load;
}
Handler build_st(Builder& builder) {
  prepare(builder, 0, 1, false);
  return &store;
}

Handler build_prefetch(Builder&) {
  return &do_nothing;
}

constexpr Row rows[] = {
    {"ld", any_type, build_ld},
    {"ldu", any_type, build_ld},
    {"st", any_type, build_st},
    {"prefetch", any_type, build_prefetch},
    {"prefetchu", any_type, build_prefetch},
};

}  // namespace

std::span<const Row> memory_rows() {
  return rows;
}

}  // namespace emulator
