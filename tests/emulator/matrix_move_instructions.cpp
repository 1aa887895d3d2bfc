/// ldmatrix, stmatrix and movmatrix of 8 x 8 matrices of 16-bit elements.

#include "tests/emulator/builder.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/rendezvous.h"
#include "tests/emulator/spaces.h"
#include "tests/emulator/tensor_tiles.h"

namespace emulator {

namespace {

constexpr std::uint64_t row_bytes = 16;

// at[0]: addresses of rows, those of matrix i in lanes 8i to 8i + 7; vectors: the registers.

std::byte* row_of_matrix(Warp& warp, const Instruction& instruction, int lane, Access access) {
  const std::uint64_t address = Lanes<std::uint64_t>(warp, instruction.at[0])[lane];
  return access_memory(warp, lane, Space::shared,
                       (address + static_cast<std::uint64_t>(instruction.immediate)) & 0xffff'ffff, row_bytes,
                       access);
}

/// The element of a matrix that a lane holds in the given half of its register.
struct Element {
  int row;
  int column;
};
template <bool transposed>
Element element_of(int lane, int half) {
  const Element plain{lane / 4, lane % 4 * 2 + half};
  return transposed ? Element{plain.column, plain.row} : plain;
}

template <bool transposed>
void load_matrices(Warp& warp, const Instruction& instruction, Mask mask) {
  if (rendezvous_of_all(warp, mask) == 0) return;
  std::vector<HalfTile> matrices(instruction.vectors.size(), HalfTile(8, 8));
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    for (int row = 0; row < 8; ++row)
      std::memcpy(&matrices[i](row, 0),
                  row_of_matrix(warp, instruction, static_cast<int>(8 * i) + row, reading), row_bytes);
  }
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    Lanes<std::uint32_t> result(warp, instruction.vectors[i]);
    for (int lane = 0; lane < warp_size; ++lane) {
      std::uint32_t codes = 0;
      for (int half = 0; half < 2; ++half) {
        const Element element = element_of<transposed>(lane, half);
        codes = with_half(codes, half, matrices[i](element.row, element.column));
      }
      result.set(lane, codes);
    }
  }
}

template <bool transposed>
void store_matrices(Warp& warp, const Instruction& instruction, Mask mask) {
  if (rendezvous_of_all(warp, mask) == 0) return;
  for (std::size_t i = 0; i < instruction.vectors.size(); ++i) {
    HalfTile matrix(8, 8);
    for (int lane = 0; lane < warp_size; ++lane) {
      for (int half = 0; half < 2; ++half) {
        const Element element = element_of<transposed>(lane, half);
        matrix(element.row, element.column) =
            half_of(Lanes<std::uint32_t>(warp, instruction.vectors[i])[lane], half);
      }
    }
    for (int row = 0; row < 8; ++row)
      std::memcpy(row_of_matrix(warp, instruction, static_cast<int>(8 * i) + row, writing), &matrix(row, 0),
                  row_bytes);
  }
}

void transpose_matrix(Warp& warp, const Instruction& instruction, Mask mask) {
  if (rendezvous_of_all(warp, mask) == 0) return;
  HalfTile matrix(8, 8);
  for (int lane = 0; lane < warp_size; ++lane) {
    const std::uint32_t codes = Lanes<std::uint32_t>(warp, instruction.at[1])[lane];
    for (int half = 0; half < 2; ++half) matrix(lane / 4, lane % 4 * 2 + half) = half_of(codes, half);
  }
  for (int lane = 0; lane < warp_size; ++lane) {
    const Element low = element_of<true>(lane, 0), high = element_of<true>(lane, 1);
    Lanes<std::uint32_t>(warp, instruction.at[0])
        .set(lane, with_half(matrix(low.row, low.column), 1, matrix(high.row, high.column)));
  }
}

bool take_transposed(Builder& builder, std::size_t address, std::size_t registers) {
  Opcode& opcode = builder.opcode;
  opcode.ignore({"sync", "aligned"});
  if (!opcode.take("m8n8")) builder.refuse("the emulator does not know this shape of matrices");
  std::size_t count = 0;
  if (opcode.take("x1")) count = 1;
  if (opcode.take("x2")) count = 2;
  if (opcode.take("x4")) count = 4;
  const bool transposed = opcode.take("trans");
  if (take_space(opcode) != Space::shared)
    builder.refuse("the emulator knows matrices in .shared memory only");
  opcode.take_type();
  opcode.finish();
  builder.address(address, 0);
  builder.out.vectors = builder.vector(registers, Type::b32, registers == 0, count);
  return transposed;
}

Handler build_ldmatrix(Builder& builder) {
  return take_transposed(builder, 1, 0) ? &load_matrices<true> : &load_matrices<false>;
}
Handler build_stmatrix(Builder& builder) {
  return take_transposed(builder, 0, 1) ? &store_matrices<true> : &store_matrices<false>;
}
Handler build_movmatrix(Builder& builder) {
  builder.opcode.ignore({"sync", "aligned", "m8n8", "trans"});
  builder.opcode.take_type();
  builder.operands({Type::b32, Type::b32});
  return &transpose_matrix;
}

constexpr Row rows[] = {
    {"ldmatrix", any_type, build_ldmatrix},
    {"stmatrix", any_type, build_stmatrix},
    {"movmatrix", any_type, build_movmatrix},
};

}  // namespace

std::span<const Row> matrix_move_rows() {
  return rows;
}

}  // namespace emulator
