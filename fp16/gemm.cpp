#include "fp16/gemm.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "fp16/bulk.h"
#include "fp16/formats.h"
#include "fp16/gemm_kernels.h"
#include "fp16/parts.h"

namespace fp16 {
namespace {

using detail::block_depth;

// A packed block of B (depth x columns) stays in the second-level cache, a packed block of A beside it.
// The depth is the longest run that load_run() is asked for along k, block_columns the longest across.
constexpr std::size_t most_block_rows = 128;
constexpr std::size_t block_columns = 1024;
constexpr std::size_t widest_tile = 64;

template <class Real>
struct Product {
  MatrixOperand a;
  MatrixOperand b;
  Real* c;
  std::size_t row_stride;
  const GemmOptions& options;
};

/// A tensor core's kernel with the core bound to it, to be used as a TileKernel is.
struct TensorCoreTile {
  std::size_t rows;
  std::size_t columns;
  std::size_t products_per_step;
  const TensorCore& core;
  detail::TensorCoreKernel::Advance kernel;

  void advance(const float* a, const float* b, std::size_t depth, float* c, std::size_t row_stride) const {
    kernel({core, a, rows, b, columns, depth}, c, row_stride);
  }
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
template <class Real, class Tile>
void advance_edge_tile(const Tile& kernel, const Real* a, const Real* b, std::size_t depth, Real* c,
                       std::size_t row_stride, std::size_t rows, std::size_t columns) {
  Real tile[widest_tile * widest_tile] = {};
  for (std::size_t i = 0; i < rows; ++i) std::copy_n(c + i * row_stride, columns, tile + i * kernel.columns);
  kernel.advance(a, b, depth, tile, kernel.columns);
  for (std::size_t i = 0; i < rows; ++i) std::copy_n(tile + i * kernel.columns, columns, c + i * row_stride);
}

/// All tiles of one packed block of A (rows) against one packed block of B (columns).
template <class Real, class Tile>
void advance_block(const Tile& kernel, const Real* packed_a, const Real* packed_b, std::size_t rows,
                   std::size_t columns, std::size_t depth, Real* c, std::size_t row_stride) {
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

/// Blocks over k end where a step does.
template <class Real, class Tile>
void multiply(const Product<Real>& p, const Tile& tile) {
  const std::size_t block_rows = most_block_rows - most_block_rows % tile.rows;
  const std::size_t depth_of_block = block_depth - block_depth % tile.products_per_step;
  thread_local std::vector<Real> packed_a, packed_b;
  packed_a.resize(block_rows * depth_of_block);
  packed_b.resize(round_up(block_columns, tile.columns) * depth_of_block);

  const std::size_t rows = p.a.rows, columns = p.b.columns, depth = p.a.columns;
  const MatrixOperand b_by_column = p.b.transposed();
  for (std::size_t j = 0; j < columns; j += block_columns) {
    const std::size_t js = std::min(block_columns, columns - j);
    for (std::size_t k = 0; k < depth; k += depth_of_block) {
      const std::size_t ks = std::min(depth_of_block, depth - k);
      pack(b_by_column, {j, js, k, ks}, tile.columns, packed_b.data(), p.options.path);
      for (std::size_t i = 0; i < rows; i += block_rows) {
        const std::size_t is = std::min(block_rows, rows - i);
        pack(p.a, {i, is, k, ks}, tile.rows, packed_a.data(), p.options.path);
        advance_block(tile, packed_a.data(), packed_b.data(), is, js, ks, p.c + i * p.row_stride + j,
                      p.row_stride);
      }
    }
  }
}

/// The part of a product that makes rows begin .. end - 1 of C.
template <class Real>
Product<Real> rows_of(const Product<Real>& p, std::size_t begin, std::size_t end) {
  Product<Real> part = p;
  part.a.data = static_cast<const std::byte*>(p.a.data) + begin * p.a.row_stride * p.a.storage.size_bytes();
  part.a.rows = end - begin;
  part.c = p.c + begin * p.row_stride;
  return part;
}

template <class Real, class Tile>
void run(const Product<Real>& p, const Tile& tile) {
  detail::for_each_part(p.a.rows, p.options.threads, tile.rows, [&](std::size_t begin, std::size_t end) {
    const Product<Real> part = rows_of(p, begin, end);
    for (std::size_t i = 0; p.options.start == ChainStart::zero && i < part.a.rows; ++i)
      std::fill_n(part.c + i * part.row_stride, part.b.columns, Real{0});
    multiply(part, tile);
  });
}

template <class Real>
void make_nans_canonical(const Product<Real>& p) {
  for (std::size_t i = 0; i < p.a.rows; ++i) {
    Real* row = p.c + i * p.row_stride;
    for (std::size_t j = 0; j < p.b.columns; ++j)
      row[j] = row[j] == row[j] ? row[j] : std::numeric_limits<Real>::quiet_NaN();
  }
}

template <class Real>
void run_chains(const Product<Real>& p, const detail::TileKernel<Real>& kernel) {
  run(p, kernel);
  make_nans_canonical(p);
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

/// Whether the vector kernels can do this core's steps, as those of every row of `tensor_cores`: 32 bits hold
/// the sum of a step's products, binary32 c is never truncated without products, and the scales of a
/// binary16_floor are floats. Else the portable kernel serves.
bool suits_vector_lanes(const TensorCore& core) {
  const int summed_bits = std::bit_width(static_cast<unsigned>(core.products_per_step - 1));
  return core.fraction_bits + 2 + summed_bits <= 31 && core.fraction_bits >= binary32.trailing_bits() &&
         core.binary32_floor <= core.fraction_bits + binary32.emin_subnormal() &&
         std::abs(core.binary16_floor) <= 60;
}

std::string shape_of(const MatrixOperand& m) {
  return std::to_string(m.rows) + "x" + std::to_string(m.columns);
}

void require_valid(const MatrixOperand& a, const MatrixOperand& b, Format output) {
  if (a.columns != b.rows) {
    throw std::invalid_argument("gemm: shapes " + shape_of(a) + " and " + shape_of(b) + " do not multiply");
  }
  for (const MatrixOperand* m : {&a, &b}) {
    if (m->storage != binary16 && m->storage != binary32 && m->storage != binary64) {
      throw std::invalid_argument("gemm: storage: " + std::string(name_of(m->storage)) +
                                  " is not allowed; binary16, binary32 or binary64");
    }
    if (m->storage.precision > output.precision) {
      throw std::invalid_argument("gemm: an operand is stored wider than the output");
    }
    if (m->row_stride != 1 && m->column_stride != 1) {
      throw std::invalid_argument("gemm: an operand has no contiguous dimension");
    }
  }
}

void require_valid(const TensorCoreAccumulation& accumulation) {
  const int products = accumulation.core.products_per_step;
  if (products < 1 || products > static_cast<int>(block_depth)) {
    throw std::invalid_argument("gemm: products_per_step: " + std::to_string(products) +
                                " is not allowed; 1 to " + std::to_string(block_depth));
  }
  if (!accumulation.core.is_valid()) {
    throw std::invalid_argument("gemm: fraction_bits: " + std::to_string(accumulation.core.fraction_bits) +
                                " is not allowed; at least 0, and a step's sum must fit into 63 bits");
  }
  if (accumulation.accumulator != binary32 && accumulation.accumulator != binary16) {
    throw std::invalid_argument("gemm: accumulator: " + std::string(name_of(accumulation.accumulator)) +
                                " is not one of a tensor core; binary32 or binary16");
  }
}

const detail::TileKernel<float>& kernel_of(Accumulation accumulation, const detail::TileKernels& kernels) {
  switch (accumulation) {
    case Accumulation::fp32_fma_chain:
      return kernels.fp32_fma_chain;
    case Accumulation::fp16_fma_chain:
      return kernels.fp16_fma_chain;
    case Accumulation::fp16_mul_add_chain:
      return kernels.fp16_mul_add_chain;
    case Accumulation::fp64_fma_chain:
      break;
  }
  throw std::invalid_argument("gemm: " + std::string(name_of(accumulation)) + " needs a double output");
}

}  // namespace

std::string_view name_of(Accumulation accumulation) {
  switch (accumulation) {
    case Accumulation::fp32_fma_chain:
      return "fp32_fma_chain";
    case Accumulation::fp16_fma_chain:
      return "fp16_fma_chain";
    case Accumulation::fp16_mul_add_chain:
      return "fp16_mul_add_chain";
    case Accumulation::fp64_fma_chain:
      return "fp64_fma_chain";
  }
  return "unknown";
}

std::string name_of(const TensorCoreAccumulation& accumulation) {
  return "tensor_core_" + std::string(accumulation.core.name) + "_" +
         std::string(name_of(accumulation.accumulator));
}

void gemm(const MatrixOperand& a, const MatrixOperand& b, float* c, std::size_t row_stride,
          Accumulation accumulation, const GemmOptions& options) {
  require_valid(a, b, binary32);
  run_chains<float>({a, b, c, row_stride, options}, kernel_of(accumulation, kernels_of(options.path)));
}

void gemm(const MatrixOperand& a, const MatrixOperand& b, float* c, std::size_t row_stride,
          const TensorCoreAccumulation& accumulation, const GemmOptions& options) {
  require_valid(a, b, binary32);
  require_valid(accumulation);
  const TensorCore& core = accumulation.core;
  const detail::TileKernels& kernels = kernels_of(options.path);
  const detail::TensorCoreKernel& kernel =
      (suits_vector_lanes(core) ? kernels : detail::portable_tile_kernels).tensor_core;
  const TensorCoreTile tile{
      .rows = kernel.rows,
      .columns = kernel.columns,
      .products_per_step = static_cast<std::size_t>(core.products_per_step),
      .core = core,
      .kernel = accumulation.accumulator == binary32 ? kernel.advance_binary32 : kernel.advance_binary16};
  run<float>({a, b, c, row_stride, options}, tile);
}

void gemm(const MatrixOperand& a, const MatrixOperand& b, double* c, std::size_t row_stride,
          const GemmOptions& options) {
  require_valid(a, b, binary64);
  run_chains<double>({a, b, c, row_stride, options}, kernels_of(options.path).fp64_fma_chain);
}

}  // namespace fp16
