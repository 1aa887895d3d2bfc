#pragma once
/// Blocks of a product's operands as the panels that kernels read: packed, or where they are.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "fp16/formats.h"
#include "fp16/gemm.h"
#include "fp16/vector/gemm_kernels.h"

namespace fp16::detail {
namespace {

// A packed block of B (depth x columns) stays in the second-level cache, a packed block of A beside it.
constexpr std::size_t most_block_rows = 128;
constexpr std::size_t most_block_columns = 1024;
constexpr std::size_t widest_tile = 64;

using WidenHalves = void (*)(const std::uint16_t* in, float* out, std::size_t count);

/// `count` elements of a matrix as floats: where they are, when they are stored so, else in `buffer`.
const float* run_of(const MatrixOperand& m, std::size_t offset, std::size_t count, WidenHalves widen_halves,
                    float* buffer) {
  if (m.storage == binary32) return static_cast<const float*>(m.data) + offset;
  const std::uint16_t* codes = static_cast<const std::uint16_t*>(m.data) + offset;
  if (m.storage == binary16) {
    widen_halves(codes, buffer, count);
  } else {
    for (std::size_t i = 0; i < count; ++i)
      buffer[i] = std::bit_cast<float>(static_cast<std::uint32_t>(codes[i]) << 16);
  }
  return buffer;
}

const double* run_of(const MatrixOperand& m, std::size_t offset, std::size_t count, WidenHalves widen_halves,
                     double* buffer) {
  if (m.storage == binary64) return static_cast<const double*>(m.data) + offset;
  float narrow[most_block_columns];
  std::copy_n(run_of(m, offset, count, widen_halves, narrow), count, buffer);
  return buffer;
}

struct Block {
  std::size_t row, rows, depth, depths;
};

struct Panels {
  std::size_t width, granule;
};

constexpr std::size_t divide_up(std::size_t n, std::size_t divisor) {
  return (n + divisor - 1) / divisor;
}

// Panels are written four elements at a time, the last four of a width overlapping those before.
constexpr std::size_t panel_group = 4;

template <class Visit>
void for_each_group(std::size_t width, Visit visit) {
  for (std::size_t lane = 0; lane + panel_group <= width; lane += panel_group) visit(lane);
  if (width % panel_group != 0) visit(width - panel_group);
}

/// out[k * width + lane] = rows[lane][k] for four lanes and `count` of k.
template <class Real>
void transpose_group(const Real* const* rows, std::size_t count, std::size_t width, Real* out) {
  typedef Real Four __attribute__((vector_size(panel_group * sizeof(Real))));
  std::size_t k = 0;
  for (; k + panel_group <= count; k += panel_group) {
    Four in[panel_group];
    for (std::size_t lane = 0; lane < panel_group; ++lane)
      std::memcpy(&in[lane], rows[lane] + k, sizeof(Four));
    const Four low01 = __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5);
    const Four high01 = __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7);
    const Four low23 = __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5);
    const Four high23 = __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
    const Four columns[panel_group] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                                       __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                                       __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                                       __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
    for (std::size_t i = 0; i < panel_group; ++i)
      std::memcpy(out + (k + i) * width, &columns[i], sizeof(Four));
  }
  for (; k < count; ++k) {
    for (std::size_t lane = 0; lane < panel_group; ++lane) out[k * width + lane] = rows[lane][k];
  }
}

/// Packs a block of m (rows x depths) into panels of `width` rows:
/// panel p holds packed[(p * depths + k) * width + lane] = m[row + p * width + lane][depth + k]; beyond the
/// rows zeros, at least up to a multiple of `granule`. Here rows are contiguous: one run for every k is dealt
/// out to the panels.
template <class Real>
void pack_contiguous_rows(const MatrixOperand& m, const Block& block, std::size_t width,
                          WidenHalves widen_halves, Real* packed) {
  const std::size_t rows = block.rows;
  Real buffer[most_block_columns];
  for (std::size_t k = 0; k < block.depths; ++k) {
    const std::size_t offset = block.row + (block.depth + k) * m.column_stride;
    const Real* run = run_of(m, offset, rows, widen_halves, buffer);
    std::size_t first = 0;
    for (; first + width <= rows; first += width) {
      Real* out = packed + first * block.depths + k * width;
      for_each_group(width, [&](std::size_t lane) {
        std::memcpy(out + lane, run + first + lane, panel_group * sizeof(Real));
      });
    }
    if (first < rows) {
      Real* out = packed + first * block.depths + k * width;
      std::fill(std::copy(run + first, run + rows, out), out + width, Real{0});
    }
  }
}

/// Packs a panel where k is contiguous: runs of a panel's rows are transposed.
template <class Real>
void pack_contiguous_depths(const MatrixOperand& m, const Block& block, Panels panels,
                            WidenHalves widen_halves, Real* packed) {
  static constexpr Real zeros[block_depth] = {};
  Real buffers[widest_tile][block_depth];
  for (std::size_t first = 0; first < block.rows; first += panels.width) {
    const std::size_t rows = block.rows - first;
    const std::size_t lanes = std::min(panels.width, divide_up(rows, panels.granule) * panels.granule);
    const Real* runs[widest_tile];
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const std::size_t offset = (block.row + first + lane) * m.row_stride + block.depth;
      runs[lane] = lane < rows ? run_of(m, offset, block.depths, widen_halves, buffers[lane]) : zeros;
    }
    for_each_group(lanes, [&](std::size_t lane) {
      transpose_group(runs + lane, block.depths, panels.width, packed + first * block.depths + lane);
    });
  }
}

template <class Real>
void pack(const MatrixOperand& m, const Block& block, Panels panels, WidenHalves widen_halves, Real* packed) {
  if (m.row_stride == 1) {
    pack_contiguous_rows(m, block, panels.width, widen_halves, packed);
  } else {
    pack_contiguous_depths(m, block, panels, widen_halves, packed);
  }
}

/// A block of an operand as panels: the first rows where they are, the others packed.
template <class Real>
struct BlockPanels {
  Panel<Real> in_place;
  std::size_t rows_in_place;
  const Real* packed;
  std::size_t width, depths;

  /// The panel that begins with this row of the block.
  Panel<Real> at(std::size_t row) const {
    if (row >= rows_in_place) return {packed + (row - rows_in_place) * depths, width, 1};
    return {in_place.data + row * in_place.stride, in_place.step, in_place.stride};
  }
};

/// Whether a kernel may read the operand where it is, by its type and the distance of its runs: those a page apart push one
/// another out of the cache.
template <class Real>
bool is_read_in_place(const MatrixOperand& m, std::size_t stride) {
  return m.storage == (sizeof(Real) == sizeof(float) ? binary32 : binary64) &&
         stride % (4096 / sizeof(Real)) != 0;
}

/// Panels of a block; what is packed of it stays in `packed`.
template <class Real>
BlockPanels<Real> panels_of(const MatrixOperand& m, const Block& block, Panels panels,
                            std::size_t rows_in_place, WidenHalves widen_halves, Real* packed) {
  const Block rest{block.row + rows_in_place, block.rows - rows_in_place, block.depth, block.depths};
  if (rest.rows > 0) pack(m, rest, panels, widen_halves, packed);
  const Real* data = rows_in_place == 0 ? nullptr
                                        : static_cast<const Real*>(m.data) + block.row * m.row_stride +
                                              block.depth * m.column_stride;
  return {{data, m.column_stride, m.row_stride}, rows_in_place, packed, panels.width, block.depths};
}

}  // namespace
}  // namespace fp16::detail
