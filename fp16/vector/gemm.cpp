#include "fp16/gemm.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "fp16/formats.h"
#include "fp16/vector/bulk_kernels.h"
#include "fp16/vector/gemm_packing.h"
#include "fp16/vector/threads.h"

namespace fp16 {
namespace {

using detail::block_depth;
using detail::BlockPanels;
using detail::divide_up;
using detail::is_read_in_place;
using detail::most_block_columns;
using detail::most_block_rows;
using detail::panel_group;
using detail::panels_of;
using detail::Tile;
using detail::TileKernel;
using detail::WidenHalves;
using detail::widest_tile;

template <class Real>
struct Product {
  MatrixOperand a;
  MatrixOperand b;
  Real* c;
  std::size_t row_stride;
  const GemmOptions& options;
  WidenHalves widen_halves;
};

/// Works on the part of a tile that lies inside C in a buffer that holds the whole.
template <class Real, class Advance>
void advance_in_buffer(Tile<Real> tile, std::size_t rows, std::size_t columns, std::size_t tile_rows,
                       std::size_t tile_columns, Advance advance) {
  Real buffer[widest_tile * widest_tile];
  std::fill_n(buffer, tile_rows * tile_columns, Real{0});
  for (std::size_t i = 0; !tile.from_zero && i < rows; ++i)
    std::copy_n(tile.c + i * tile.row_stride, columns, buffer + i * tile_columns);
  Tile<Real> whole = tile;
  whole.c = buffer;
  whole.row_stride = tile_columns;
  advance(whole);
  for (std::size_t i = 0; i < rows; ++i)
    std::copy_n(buffer + i * tile_columns, columns, tile.c + i * tile.row_stride);
}

/// The first rows and columns of a tile.
template <class Real>
void advance(const TileKernel<Real>& kernel, const Tile<Real>& tile, std::size_t rows, std::size_t columns) {
  const std::size_t vectors = divide_up(columns, kernel.lanes);
  const auto* const variants = tile.a.stride == 1 ? kernel.advance : kernel.advance_rows;
  const auto variant = variants[(vectors - 1) * kernel.rows + rows - 1];
  if (columns == vectors * kernel.lanes) return variant(tile);
  advance_in_buffer(tile, rows, columns, rows, vectors * kernel.lanes, variant);
}

/// A tensor core's kernel with the core bound to it, to be used as a TileKernel is.
struct TensorCoreTile {
  std::size_t rows;
  std::size_t columns;
  std::size_t lanes;  ///< all columns are worked on
  std::size_t products_per_step;
  const TensorCore& core;
  detail::TensorCoreKernel::Advance kernel;
};

void advance(const TensorCoreTile& kernel, const Tile<float>& tile, std::size_t rows, std::size_t columns) {
  const auto whole = [&](const Tile<float>& t) {
    kernel.kernel({kernel.core, t.a.data, t.a.step, t.b.data, t.b.step, t.depth}, t.c, t.row_stride);
  };
  if (rows == kernel.rows && columns == kernel.columns && !tile.from_zero) return whole(tile);
  advance_in_buffer(tile, rows, columns, kernel.rows, kernel.columns, whole);
}

// How many rows of a block of A, and columns of one of B, a kernel reads where they are. Packing pays where enough of the
// other operand meets what was packed, the sooner, the slower what is not packed is read.
constexpr std::size_t few_panels = 8, few_columns = 64;

template <class Real>
std::size_t rows_in_place(const TileKernel<Real>& kernel, const MatrixOperand& a, std::size_t rows,
                          std::size_t columns) {
  if (a.row_stride == 1) {
    const bool is_in_place = kernel.any_step && divide_up(columns, kernel.columns) <= few_panels &&
                             is_read_in_place<Real>(a, a.column_stride);
    return is_in_place ? rows / kernel.rows * kernel.rows : 0;
  }
  const bool is_in_place =
      kernel.advance_rows != nullptr && columns <= few_columns && is_read_in_place<Real>(a, a.row_stride);
  return is_in_place ? rows : 0;
}
template <class Real>
std::size_t columns_in_place(const TileKernel<Real>& kernel, const MatrixOperand& b, std::size_t rows,
                             std::size_t columns) {
  const bool is_in_place = kernel.any_step && b.column_stride == 1 &&
                           divide_up(rows, kernel.rows) <= few_panels &&
                           is_read_in_place<Real>(b, b.row_stride);
  if (!is_in_place) return 0;
  return columns % kernel.lanes == 0 ? columns : columns / kernel.columns * kernel.columns;
}
std::size_t rows_in_place(const TensorCoreTile&, const MatrixOperand&, std::size_t, std::size_t) {
  return 0;
}
std::size_t columns_in_place(const TensorCoreTile&, const MatrixOperand&, std::size_t, std::size_t) {
  return 0;
}

/// All tiles of one block of A against one of B, `c` the first of them.
template <class Real, class Kernel>
void advance_block(const Kernel& kernel, const BlockPanels<Real>& a, const BlockPanels<Real>& b,
                   const Tile<Real>& c, std::size_t rows, std::size_t columns) {
  for (std::size_t j = 0; j < columns; j += kernel.columns) {
    for (std::size_t i = 0; i < rows; i += kernel.rows) {
      Tile<Real> tile = c;
      tile.a = a.at(i);
      tile.b = b.at(j);
      tile.c += i * c.row_stride + j;
      advance(kernel, tile, std::min(kernel.rows, rows - i), std::min(kernel.columns, columns - j));
    }
  }
}

/// The size of blocks, a multiple of `granule` of at most `most`, that cut `count` about evenly.
constexpr std::size_t block_of(std::size_t count, std::size_t most, std::size_t granule) {
  const std::size_t whole = std::max(most / granule, std::size_t{1}) * granule;
  const std::size_t even = divide_up(count, std::max(divide_up(count, whole), std::size_t{1}));
  return std::max(divide_up(even, granule), std::size_t{1}) * granule;
}

/// Blocks over k end where a step does.
template <class Real, class Kernel>
void multiply(const Product<Real>& p, const Kernel& kernel) {
  const std::size_t rows = p.a.rows, columns = p.b.columns, depth = p.a.columns;
  const std::size_t block_rows = block_of(rows, most_block_rows, kernel.rows),
                    block_columns = block_of(columns, most_block_columns, kernel.columns),
                    block_depths = block_of(depth, block_depth, kernel.products_per_step);
  thread_local std::vector<Real> packed_a, packed_b;
  packed_a.resize(std::max(packed_a.size(), block_rows * block_depths));
  packed_b.resize(std::max(packed_b.size(), block_columns * block_depths));

  const MatrixOperand b_by_column = p.b.transposed();
  for (std::size_t j = 0; j < columns; j += block_columns) {
    const std::size_t js = std::min(block_columns, columns - j);
    for (std::size_t k = 0; k < depth; k += block_depths) {
      const std::size_t ks = std::min(block_depths, depth - k);
      const auto b =
          panels_of(b_by_column, {j, js, k, ks}, {kernel.columns, std::max(kernel.lanes, panel_group)},
                    columns_in_place(kernel, p.b, rows, js), p.widen_halves, packed_b.data());
      for (std::size_t i = 0; i < rows; i += block_rows) {
        const std::size_t is = std::min(block_rows, rows - i);
        const auto a = panels_of(p.a, {i, is, k, ks}, {kernel.rows, kernel.rows},
                                 rows_in_place(kernel, p.a, is, js), p.widen_halves, packed_a.data());
        const Tile<Real> first{.a = {},
                               .b = {},
                               .depth = ks,
                               .c = p.c + i * p.row_stride + j,
                               .row_stride = p.row_stride,
                               .from_zero = k == 0 && p.options.start == ChainStart::zero};
        advance_block(kernel, a, b, first, is, js);
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

template <class Real, class Kernel>
void run(const Product<Real>& p, const Kernel& kernel) {
  if (p.a.columns == 0 && p.options.start == ChainStart::zero) {
    for (std::size_t i = 0; i < p.a.rows; ++i) std::fill_n(p.c + i * p.row_stride, p.b.columns, Real{0});
  }
  detail::for_each_part(p.a.rows, p.options.threads, kernel.rows, [&](std::size_t begin, std::size_t end) {
    multiply(rows_of(p, begin, end), kernel);
  });
}

struct Kernels {
  const detail::TileKernels& tiles;
  WidenHalves widen_halves;
};

Kernels kernels_of(VectorPath path) {
  require_available(path);
  switch (path) {
#ifdef __x86_64__
    case VectorPath::avx512:
      return {detail::avx512_tile_kernels, detail::avx512_bulk_kernels.half_to_float};
    case VectorPath::avx2_f16c:
      return {detail::avx2_tile_kernels, detail::avx2_bulk_kernels.half_to_float};
#elif defined(__aarch64__)
    case VectorPath::neon_fp16:
      return {detail::neon_fp16_tile_kernels, detail::neon_bulk_kernels.half_to_float};
    case VectorPath::neon:
      return {detail::neon_tile_kernels, detail::neon_bulk_kernels.half_to_float};
#endif
    default:
      return {detail::portable_tile_kernels, detail::portable_bulk_kernels.half_to_float};
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

void require_valid(const MatrixOperand& a, const MatrixOperand& b, std::size_t row_stride, Format output) {
  if (a.columns != b.rows) {
    throw std::invalid_argument("gemm: shapes " + shape_of(a) + " and " + shape_of(b) + " do not multiply");
  }
  if (a.rows > 1 && row_stride < b.columns) {
    throw std::invalid_argument("gemm: row_stride: " + std::to_string(row_stride) +
                                " is not allowed; at least the " + std::to_string(b.columns) +
                                " columns of C");
  }
  for (const MatrixOperand* m : {&a, &b}) {
    if (m->storage != binary16 && m->storage != bfloat16 && m->storage != binary32 &&
        m->storage != binary64) {
      throw std::invalid_argument("gemm: storage: " + std::string(name_of(m->storage)) +
                                  " is not allowed; binary16, bfloat16, binary32 or binary64");
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

const TileKernel<float>& kernel_of(Accumulation accumulation, const detail::TileKernels& kernels) {
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
  require_valid(a, b, row_stride, binary32);
  const Kernels kernels = kernels_of(options.path);
  run<float>({a, b, c, row_stride, options, kernels.widen_halves}, kernel_of(accumulation, kernels.tiles));
}

void gemm(const MatrixOperand& a, const MatrixOperand& b, float* c, std::size_t row_stride,
          const TensorCoreAccumulation& accumulation, const GemmOptions& options) {
  require_valid(a, b, row_stride, binary32);
  require_valid(accumulation);
  const TensorCore& core = accumulation.core;
  const Kernels kernels = kernels_of(options.path);
  const detail::TensorCoreKernel& kernel =
      (suits_vector_lanes(core) ? kernels.tiles : detail::portable_tile_kernels).tensor_core;
  const TensorCoreTile tile{
      .rows = kernel.rows,
      .columns = kernel.columns,
      .lanes = kernel.columns,
      .products_per_step = static_cast<std::size_t>(core.products_per_step),
      .core = core,
      .kernel = accumulation.accumulator == binary32 ? kernel.advance_binary32 : kernel.advance_binary16};
  run<float>({a, b, c, row_stride, options, kernels.widen_halves}, tile);
}

void gemm(const MatrixOperand& a, const MatrixOperand& b, double* c, std::size_t row_stride,
          const GemmOptions& options) {
  require_valid(a, b, row_stride, binary64);
  const Kernels kernels = kernels_of(options.path);
  run<double>({a, b, c, row_stride, options, kernels.widen_halves}, kernels.tiles.fp64_fma_chain);
}

}  // namespace fp16
