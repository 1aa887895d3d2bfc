/// mma.sync of binary16 operands (PTX ISA, "Matrix Fragments for mma.m16n8k8" and "mma.m16n8k16").

#include <array>
#include <cstddef>
#include <cstdint>

#include "tests/emulator/builder.h"
#include "tests/emulator/rendezvous.h"
#include "tests/emulator/tensor_tiles.h"

namespace emulator {

namespace {

// vectors: the registers of d, a, b, c in turn.

/// Register r of a holds row group + 8 (r mod 2) and columns 2t + 8 (r div 2) and the next, where group is a lane's
/// number div 4 and t its number mod 4.
HalfTile read_a(Warp& warp, const Slot* slots, int depth) {
  HalfTile a(16, depth);
  for (int lane = 0; lane < warp_size; ++lane) {
    for (int i = 0; i < depth / 4; ++i) {
      const std::uint32_t codes = Lanes<std::uint32_t>(warp, slots[i])[lane];
      for (int half = 0; half < 2; ++half)
        a(lane / 4 + 8 * (i % 2), lane % 4 * 2 + 8 * (i / 2) + half) = half_of(codes, half);
    }
  }
  return a;
}

/// By columns: register r of b holds column group and rows 2t + 8r and the next.
HalfTile read_b(Warp& warp, const Slot* slots, int depth) {
  HalfTile b(8, depth);
  for (int lane = 0; lane < warp_size; ++lane) {
    for (int i = 0; i < depth / 8; ++i) {
      const std::uint32_t codes = Lanes<std::uint32_t>(warp, slots[i])[lane];
      for (int half = 0; half < 2; ++half) b(lane / 4, lane % 4 * 2 + 8 * i + half) = half_of(codes, half);
    }
  }
  return b;
}

/// Copies: d may be written to the same registers in another order.
template <std::size_t count>
std::array<std::array<std::uint32_t, warp_size>, count> read_c(Warp& warp, const Slot* slots) {
  std::array<std::array<std::uint32_t, warp_size>, count> registers;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t lane = 0; lane < warp_size; ++lane)
      registers[i][lane] = Lanes<std::uint32_t>(warp, slots[i])[static_cast<int>(lane)];
  }
  return registers;
}

template <int depth>
void mma_binary32(Warp& warp, const Instruction& instruction, Mask mask) {
  if (rendezvous_of_all(warp, mask) == 0) return;
  const Slot *d = instruction.vectors.data(), *a = d + 4, *b = a + depth / 4, *c = b + depth / 8;
  const HalfTile a_tile = read_a(warp, a, depth), b_tile = read_b(warp, b, depth);
  const auto sums = read_c<4>(warp, c);
  for_accumulators(8, [&](int row, int column, int lane, int index) {
    const std::uint32_t sum = sums[static_cast<std::size_t>(index)][static_cast<std::size_t>(lane)];
    Lanes<std::uint32_t>(warp, d[index])
        .set(lane, multiply_add<fp16::binary32>(a_tile, row, b_tile, column, sum));
  });
}

template <int depth>
void mma_binary16(Warp& warp, const Instruction& instruction, Mask mask) {
  if (rendezvous_of_all(warp, mask) == 0) return;
  const Slot *d = instruction.vectors.data(), *a = d + 2, *b = a + depth / 4, *c = b + depth / 8;
  const HalfTile a_tile = read_a(warp, a, depth), b_tile = read_b(warp, b, depth);
  const auto sums = read_c<2>(warp, c);
  for_accumulators(8, [&](int row, int column, int lane, int index) {
    const std::uint32_t pair = sums[static_cast<std::size_t>(index / 2)][static_cast<std::size_t>(lane)];
    const std::uint16_t sum = half_of(pair, index % 2);
    const std::uint16_t result = multiply_add<fp16::binary16>(a_tile, row, b_tile, column, sum);
    Lanes<std::uint32_t> registers(warp, d[index / 2]);
    registers.set(lane, with_half(registers[lane], index % 2, result));
  });
}

Handler build_mma(Builder& builder) {
  Opcode& opcode = builder.opcode;
  opcode.ignore({"sync", "aligned"});
  const bool k16 = opcode.take("m16n8k16"), k8 = !k16 && opcode.take("m16n8k8");
  if ((!k16 && !k8) || !opcode.take("row") || !opcode.take("col"))
    builder.refuse("the emulator does not know this shape of mma");
  const Type d = opcode.take_type(), a = opcode.take_type(), b = opcode.take_type(), c = opcode.take_type();
  opcode.finish();
  if (a != Type::f16 || b != Type::f16 || c != d)
    builder.refuse("the emulator does not know these types of mma");
  const std::size_t depth = k16 ? 16 : 8, sums = d == Type::f32 ? 4 : 2;
  const std::size_t counts[] = {sums, depth / 4, depth / 8, sums};
  for (std::size_t i = 0; i < 4; ++i) {
    const std::vector<Slot> slots = builder.vector(i, Type::b32, i == 0, counts[i]);
    builder.out.vectors.insert(builder.out.vectors.end(), slots.begin(), slots.end());
  }
  if (d == Type::f32) return k16 ? &mma_binary32<16> : &mma_binary32<8>;
  if (d == Type::f16) return k16 ? &mma_binary16<16> : &mma_binary16<8>;
  builder.refuse("the emulator does not know these types of mma");
}

constexpr Row rows[] = {{"mma", any_type, build_mma}};

}  // namespace

std::span<const Row> mma_rows() {
  return rows;
}

}  // namespace emulator
