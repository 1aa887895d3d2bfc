#include "fp16/gemm.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "fp16/bulk.h"
#include "fp16/formats.h"
#include "fp16/gemm_kernels.h"

namespace fp16 {
namespace {

using detail::TileKernel;

// A packed block of B (depth x columns) stays in the second-level cache, a packed block of A beside it.
// The depth is the longest run that load_run() is asked for along k, block_columns the longest across.
constexpr std::size_t block_depth = 256;
constexpr std::size_t block_rows = 120;
constexpr std::size_t block_columns = 1024;
constexpr std::size_t widest_tile = 64;

template <class Real>
struct Product {
  const MatrixOperand& a;
  const MatrixOperand& b;
  Real* c;
  std::size_t row_stride;
  VectorPath path;
};

void load_run(const MatrixOperand& m, std::size_t offset, std::span<float> out, VectorPath path) {
  if (m.storage == binary16) {
    half_to_float(std::span(static_cast<const std::uint16_t*>(m.data) + offset, out.size()), out,
                  {.path = path});
  } else {
    std::copy_n(static_cast<const float*>(m.data) + offset, out.size(), out.begin());
  }
}

void load_run(const MatrixOperand& m, std::size_t offset, std::span<double> out, VectorPath path) {
  if (m.storage == binary64) {
    std::copy_n(static_cast<const double*>(m.data) + offset, out.size(), out.begin());
    return;
  }
  float narrow[block_columns];
  load_run(m, offset, std::span(narrow, out.size()), path);
  std::copy_n(narrow, out.size(), out.begin());
}

struct Block {
  std::size_t row, rows, depth, depths;
};

/// Packs a block of m (rows x depths) into panels of `width` rows:
/// panel p holds packed[(p * depths + k) * width + lane] = m[row + p * width + lane][depth + k], zero beyond
/// the rows.
template <class Real>
void pack(const MatrixOperand& m, const Block& block, std::size_t width, Real* packed, VectorPath path) {
  const auto [row, rows, depth, depths] = block;
  if (m.row_stride == 1) {  // rows are contiguous: one run for every k, dealt out to the panels
    Real run[block_columns + widest_tile] = {};
    for (std::size_t k = 0; k < depths; ++k) {
      load_run(m, row + (depth + k) * m.column_stride, std::span(run, rows), path);
      for (std::size_t first = 0; first < rows; first += width) {
        std::copy_n(run + first, width, packed + first * depths + k * width);
      }
    }
    return;
  }
  Real runs[widest_tile][block_depth];
  for (std::size_t first = 0; first < rows; first += width) {  // k is contiguous: `width` runs, transposed
    const std::size_t lanes = std::min(width, rows - first);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      load_run(m, (row + first + lane) * m.row_stride + depth, std::span(runs[lane], depths), path);
    }
    for (std::size_t lane = lanes; lane < width; ++lane) std::fill_n(runs[lane], depths, Real{0});
    Real* out = packed + first * depths;
    for (std::size_t k = 0; k < depths; ++k) {
      for (std::size_t lane = 0; lane < width; ++lane) *out++ = runs[lane][k];
    }
  }
}

/// A tile that reaches over C's edge is computed whole in a buffer, of which the part inside C is kept.
template <class Real>
void advance_edge_tile(const TileKernel<Real>& kernel, const Real* a, const Real* b, std::size_t depth,
                       Real* c, std::size_t row_stride, std::size_t rows, std::size_t columns) {
  Real tile[widest_tile * widest_tile] = {};
  for (std::size_t i = 0; i < rows; ++i) std::copy_n(c + i * row_stride, columns, tile + i * kernel.columns);
  kernel.advance(a, b, depth, tile, kernel.columns);
  for (std::size_t i = 0; i < rows; ++i) std::copy_n(tile + i * kernel.columns, columns, c + i * row_stride);
}

/// All tiles of one packed block of A (rows) against one packed block of B (columns).
template <class Real>
void advance_block(const TileKernel<Real>& kernel, const Real* packed_a, const Real* packed_b,
                   std::size_t rows, std::size_t columns, std::size_t depth, Real* c,
                   std::size_t row_stride) {
  for (std::size_t j = 0; j < columns; j += kernel.columns) {
    for (std::size_t i = 0; i < rows; i += kernel.rows) {
      const Real* a = packed_a + i * depth;
      const Real* b = packed_b + j * depth;
      Real* tile = c + i * row_stride + j;
      if (i + kernel.rows <= rows && j + kernel.columns <= columns) {
        kernel.advance(a, b, depth, tile, row_stride);
      } else {
        advance_edge_tile(kernel, a, b, depth, tile, row_stride, std::min(kernel.rows, rows - i),
                          std::min(kernel.columns, columns - j));
      }
    }
  }
}

constexpr std::size_t round_up(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

template <class Real>
void multiply(const Product<Real>& p, const TileKernel<Real>& kernel) {
  thread_local std::vector<Real> packed_a, packed_b;
  packed_a.resize(round_up(block_rows, kernel.rows) * block_depth);
  packed_b.resize(round_up(block_columns, kernel.columns) * block_depth);

  const std::size_t rows = p.a.rows, columns = p.b.columns, depth = p.a.columns;
  const MatrixOperand b_by_column = p.b.transposed();
  for (std::size_t j = 0; j < columns; j += block_columns) {
    const std::size_t js = std::min(block_columns, columns - j);
    for (std::size_t k = 0; k < depth; k += block_depth) {
      const std::size_t ks = std::min(block_depth, depth - k);
      pack(b_by_column, {j, js, k, ks}, kernel.columns, packed_b.data(), p.path);
      for (std::size_t i = 0; i < rows; i += block_rows) {
        const std::size_t is = std::min(block_rows, rows - i);
        pack(p.a, {i, is, k, ks}, kernel.rows, packed_a.data(), p.path);
        advance_block(kernel, packed_a.data(), packed_b.data(), is, js, ks, p.c + i * p.row_stride + j,
                      p.row_stride);
      }
    }
  }
}

const detail::TileKernels& kernels_of(VectorPath path) {
  require_available(path);
  switch (path) {
#ifdef __x86_64__
    case VectorPath::avx512:
      return detail::avx512_tile_kernels;
    case VectorPath::avx2_f16c:
      return detail::avx2_f16c_tile_kernels;
#endif
    default:
      return detail::portable_tile_kernels;
  }
}

std::string shape_of(const MatrixOperand& m) {
  return std::to_string(m.rows) + "x" + std::to_string(m.columns);
}

void require_valid(const MatrixOperand& a, const MatrixOperand& b, Format output) {
  if (a.columns != b.rows) {
    throw std::invalid_argument("gemm: shapes " + shape_of(a) + " and " + shape_of(b) + " do not multiply");
  }
  for (const MatrixOperand* m : {&a, &b}) {
    if (m->storage.precision > output.precision) {
      throw std::invalid_argument("gemm: an operand is stored wider than the output");
    }
    if (m->row_stride != 1 && m->column_stride != 1) {
      throw std::invalid_argument("gemm: an operand has no contiguous dimension");
    }
  }
}

template <class Real>
void run(const Product<Real>& p, const TileKernel<Real>& kernel, ChainStart start) {
  for (std::size_t i = 0; start == ChainStart::zero && i < p.a.rows; ++i) {
    std::fill_n(p.c + i * p.row_stride, p.b.columns, Real{0});
  }
  multiply(p, kernel);
  for (std::size_t i = 0; i < p.a.rows; ++i) {
    Real* row = p.c + i * p.row_stride;
    for (std::size_t j = 0; j < p.b.columns; ++j) {
      row[j] = row[j] == row[j] ? row[j] : std::numeric_limits<Real>::quiet_NaN();
    }
  }
}

}  // namespace

std::string_view name_of(Accumulation accumulation) {
  switch (accumulation) {
    case Accumulation::fp32_fma_chain:
      return "fp32_fma_chain";
    case Accumulation::fp16_fma_chain:
      return "fp16_fma_chain";
    case Accumulation::fp64_fma_chain:
      return "fp64_fma_chain";
  }
  return "unknown";
}

void gemm(const MatrixOperand& a, const MatrixOperand& b, float* c, std::size_t row_stride,
          Accumulation accumulation, ChainStart start, VectorPath path) {
  require_valid(a, b, binary32);
  if (accumulation == Accumulation::fp64_fma_chain) {
    throw std::invalid_argument("gemm: fp64_fma_chain needs a double output");
  }
  const detail::TileKernels& kernels = kernels_of(path);
  run<float>({a, b, c, row_stride, path},
             accumulation == Accumulation::fp16_fma_chain ? kernels.fp16_fma_chain : kernels.fp32_fma_chain,
             start);
}

void gemm(const MatrixOperand& a, const MatrixOperand& b, double* c, std::size_t row_stride, ChainStart start,
          VectorPath path) {
  require_valid(a, b, binary64);
  run<double>({a, b, c, row_stride, path}, kernels_of(path).fp64_fma_chain, start);
}

}  // namespace fp16
