/// wmma of m16n16k16 with binary16 operands. Which lane holds which element is not specified, so it is one here that
/// no kernel would guess.

#include "tests/emulator/builder.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/rendezvous.h"
#include "tests/emulator/spaces.h"
#include "tests/emulator/tensor_tiles.h"

namespace emulator {

namespace {

constexpr int side = 16, elements = side * side;

/// The element in the n-th place of the fragment, counting all places of lane 0 first. Operands have two places for
/// each element.
int element_at(int place) {
  return (place * 77 + 13) % elements;
}

// at[0]: address, at[1]: stride in elements. vectors: registers. immediate: the address's offset.

struct Fragment {
  int halves;  ///< in a register; 0: it holds a binary32 value
  bool is_column_major;
};
Fragment fragment_of(const Instruction& instruction) {
  return {static_cast<int>(instruction.at[3]), instruction.at[4] != 0};
}

int places_per_register(const Fragment& fragment) {
  return fragment.halves == 0 ? 1 : fragment.halves;
}

/// Visits all places with lane, register, half and the element's number.
template <typename Visit>
void for_places(std::size_t registers, int places_per_register, Visit visit) {
  const int per_lane = static_cast<int>(registers) * places_per_register;
  for (int lane = 0; lane < warp_size; ++lane) {
    for (int i = 0; i < per_lane; ++i)
      visit(lane, static_cast<std::size_t>(i / places_per_register), i % places_per_register,
            element_at(lane * per_lane + i));
  }
}

std::byte* element_in_memory(Warp& warp, const Instruction& instruction, int lane, int element,
                             Access access) {
  const Fragment fragment = fragment_of(instruction);
  const std::uint64_t bytes = fragment.halves == 0 ? 4 : 2;
  const std::uint64_t base =
      Lanes<std::uint64_t>(warp, instruction.at[0])[lane] + static_cast<std::uint64_t>(instruction.immediate);
  const std::uint64_t stride = Lanes<std::uint32_t>(warp, instruction.at[1])[lane];
  if (base % 32 != 0 || stride * bytes % 16 != 0)
    throw Fault(FaultKind::misaligned_address,
                "wmma: the address must be a multiple of 32 bytes, the stride of 16 bytes");
  const auto row = static_cast<std::uint64_t>(element / side),
             column = static_cast<std::uint64_t>(element % side);
  const std::uint64_t index = fragment.is_column_major ? column * stride + row : row * stride + column;
  return access_memory(warp, lane, instruction.space, base + index * bytes, bytes, access);
}

void load(Warp& warp, const Instruction& instruction, Mask mask) {
  if (rendezvous_of_all(warp, mask) == 0) return;
  const Fragment fragment = fragment_of(instruction);
  for_places(instruction.vectors.size(), places_per_register(fragment),
             [&](int lane, std::size_t reg, int half, int element) {
               const std::byte* bytes = element_in_memory(warp, instruction, lane, element, reading);
               Lanes<std::uint32_t> registers(warp, instruction.vectors[reg]);
               std::uint32_t value = 0;
               std::memcpy(&value, bytes, fragment.halves == 0 ? 4 : 2);
               registers.set(lane, fragment.halves == 0
                                       ? value
                                       : with_half(registers[lane], half, static_cast<std::uint16_t>(value)));
             });
}

void store(Warp& warp, const Instruction& instruction, Mask mask) {
  if (rendezvous_of_all(warp, mask) == 0) return;
  const Fragment fragment = fragment_of(instruction);
  for_places(instruction.vectors.size(), places_per_register(fragment),
             [&](int lane, std::size_t reg, int half, int element) {
               const std::uint32_t value =
                   Lanes<std::uint32_t>(warp, instruction.vectors[reg])[lane] >> 16 * half;
               std::memcpy(element_in_memory(warp, instruction, lane, element, writing), &value,
                           fragment.halves == 0 ? 4 : 2);
             });
}

HalfTile read_halves(Warp& warp, std::span<const Slot> slots) {
  HalfTile tile(side, side);
  for_places(slots.size(), 2, [&](int lane, std::size_t reg, int half, int element) {
    tile(element / side, element % side) = half_of(Lanes<std::uint32_t>(warp, slots[reg])[lane], half);
  });
  return tile;
}

HalfTile transposed(const HalfTile& tile) {
  HalfTile result(tile.columns, tile.rows);
  for (int row = 0; row < tile.rows; ++row) {
    for (int column = 0; column < tile.columns; ++column) result(column, row) = tile(row, column);
  }
  return result;
}

/// vectors: d, a, b, c. binary32: whether d and c are.
template <bool binary32>
void multiply(Warp& warp, const Instruction& instruction, Mask mask) {
  if (rendezvous_of_all(warp, mask) == 0) return;
  constexpr std::size_t sums = binary32 ? 8 : 4;
  const std::span<const Slot> slots(instruction.vectors);
  const HalfTile a = read_halves(warp, slots.subspan(sums, 8));
  const HalfTile b_columns = transposed(read_halves(warp, slots.subspan(sums + 8, 8)));
  const auto d = slots.first(sums), c = slots.last(sums);
  for_places(sums, binary32 ? 1 : 2, [&](int lane, std::size_t reg, int half, int element) {
    const int row = element / side, column = element % side;
    const std::uint32_t sum = Lanes<std::uint32_t>(warp, c[reg])[lane];
    Lanes<std::uint32_t> result(warp, d[reg]);
    if constexpr (binary32)
      result.set(lane, multiply_add<fp16::binary32>(a, row, b_columns, column, sum));
    else
      result.set(lane,
                 with_half(result[lane], half,
                           multiply_add<fp16::binary16>(a, row, b_columns, column, half_of(sum, half))));
  });
}

Handler build_move(Builder& builder, bool is_load) {
  Opcode& opcode = builder.opcode;
  const bool is_sum = opcode.take("c") || opcode.take("d");
  opcode.ignore({"a", "b", "row"});
  Instruction& out = builder.out;
  out.at[4] = opcode.take("col") ? 1 : 0;
  out.space = take_space(opcode);
  const Type type = opcode.take_type();
  opcode.finish();
  if ((type != Type::f16 && type != Type::f32) || (!is_sum && type != Type::f16))
    builder.refuse("the emulator does not know these types of wmma");
  out.at[3] = type == Type::f32 ? 0 : 2;
  const std::size_t address = is_load ? 1 : 0, registers = is_load ? 0 : 1;
  if (const auto space = builder.address(address, 0)) out.space = *space;
  out.vectors = builder.vector(registers, Type::b32, is_load, type == Type::f32 || !is_sum ? 8 : 4);
  out.at[1] = builder.operand_count() > 2 ? builder.source(2, Type::b32) : builder.names.constant(4, side);
  return is_load ? &load : &store;
}

Handler build_product(Builder& builder) {
  Opcode& opcode = builder.opcode;
  opcode.ignore({"row", "col"});
  // The layouts of operands are those with which they were loaded, and nothing is left of them in fragments.
  opcode.ignore({"row", "col"});
  const Type d = opcode.take_type(), c = opcode.take_type();
  opcode.finish();
  if (d != c || (d != Type::f32 && d != Type::f16))
    builder.refuse("the emulator does not know these types of wmma");
  const std::size_t sums = d == Type::f32 ? 8 : 4;
  const std::size_t counts[] = {sums, 8, 8, sums};
  for (std::size_t i = 0; i < 4; ++i) {
    const std::vector<Slot> slots = builder.vector(i, Type::b32, i == 0, counts[i]);
    builder.out.vectors.insert(builder.out.vectors.end(), slots.begin(), slots.end());
  }
  return d == Type::f32 ? &multiply<true> : &multiply<false>;
}

Handler build_wmma(Builder& builder) {
  Opcode& opcode = builder.opcode;
  opcode.ignore({"sync", "aligned"});
  if (!opcode.take("m16n16k16")) builder.refuse("the emulator does not know this shape of wmma");
  if (opcode.take("load")) return build_move(builder, true);
  if (opcode.take("store")) return build_move(builder, false);
  if (!opcode.take("mma")) builder.refuse("the emulator does not know this instruction");
  return build_product(builder);
}

constexpr Row rows[] = {{"wmma", any_type, build_wmma}};

}  // namespace

std::span<const Row> wmma_rows() {
  return rows;
}

}  // namespace emulator
