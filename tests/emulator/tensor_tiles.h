#pragma once
/// Matrices of binary16 codes that several lanes hold together, and their product by the model of tensor cores.

#include <cstdint>
#include <span>
#include <vector>

#include "fp16/mma.h"
#include "tests/emulator/warp.h"

namespace emulator {

template <typename Element>
struct Tile {
  Tile(int rows, int columns)
      : rows(rows),
        columns(columns),
        elements(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns)) {}
  int rows;
  int columns;
  std::vector<Element> elements;

  Element& operator()(int row, int column) {
    return elements[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
                    static_cast<std::size_t>(column)];
  }
  Element operator()(int row, int column) const { return const_cast<Tile&>(*this)(row, column); }
};

using HalfTile = Tile<std::uint16_t>;

/// One of the two halves of a 32-bit register.
inline std::uint16_t half_of(std::uint32_t reg, int index) {
  return static_cast<std::uint16_t>(reg >> 16 * index);
}
inline std::uint32_t with_half(std::uint32_t reg, int index, std::uint16_t half) {
  return (reg & ~(0xffffu << 16 * index)) | static_cast<std::uint32_t>(half) << 16 * index;
}

/// a * b + c of one element; b is by columns: b(column, k).
template <const fp16::Format& Accumulator>
fp16::Bits<Accumulator> multiply_add(const HalfTile& a, int row, const HalfTile& b_columns, int column,
                                     fp16::Bits<Accumulator> c) {
  const auto depth = static_cast<std::size_t>(a.columns);
  const std::span<const std::uint16_t> a_row(&a.elements[static_cast<std::size_t>(row) * depth], depth);
  const std::span<const std::uint16_t> b_column(&b_columns.elements[static_cast<std::size_t>(column) * depth],
                                                depth);
  return fp16::mma_dot<Accumulator>(fp16::hopper, a_row, b_column, c);
}

/// Where an element of an accumulator lies: register and, of binary16 ones, which half.
struct AccumulatorPlace {
  int reg;
  int half;
};

/// d = a * b + d for a warp's accumulators, whose slots are given: row, column -> lane and place are those of the
/// m16n8 fragments, side by side for more than 8 columns (PTX ISA, "Matrix Fragments for mma.m16n8k16" and
/// "Matrix Fragments for wgmma.mma_async.m64nNk16": the same in each warp).
template <typename Visit>
void for_accumulators(int columns, Visit visit) {
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < columns; ++column) {
      const int lane = row % 8 * 4 + column % 8 / 2;
      const int index = column / 8 * 4 + row / 8 * 2 + column % 2;
      visit(row, column, lane, index);
    }
  }
}

}  // namespace emulator
