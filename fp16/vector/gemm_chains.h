#pragma once
/// Chains of a matrix product: one tile of outputs advances by steps over lanes. `Step` adds one product to each
/// output of a vector of its `Lanes`, while its `Environment` lives. Anonymous, so that every translation unit has instances of its own,
/// compiled for its instruction set.

#include <limits>
#include <utility>

#include "fp16/vector/gemm_kernels.h"

namespace fp16::detail {
namespace {

/// The rows of a panel of A, at step k: elements[i].
template <class Real, std::size_t rows>
struct RowsApart {
  explicit RowsApart(const Panel<Real>& a) {
#pragma GCC unroll 16
    for (std::size_t i = 0; i < rows; ++i) row[i] = a.data + i * a.stride;
  }
  Real operator[](std::size_t i) const {
    return *row[i];
  }
  void advance(std::size_t step) {
#pragma GCC unroll 16
    for (std::size_t i = 0; i < rows; ++i) row[i] += step;
  }

  const Real* row[rows];
};

template <class Step, class Real, std::size_t rows, std::size_t vectors, bool has_rows_apart>
void advance_tile(const Tile<Real>& tile) {
  using Lanes = typename Step::Lanes;
  using Vector = typename Lanes::Vector;
  [[maybe_unused]] const typename Step::Environment environment;
  // Unrolling by pragma happens early enough for the compiler to keep every chain in a register.
  Vector chain[rows][vectors];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < vectors; ++v) chain[i][v] = Lanes::broadcast(0);
  }
  if (!tile.from_zero) {
#pragma GCC unroll 16
    for (std::size_t i = 0; i < rows; ++i) {
#pragma GCC unroll 4
      for (std::size_t v = 0; v < vectors; ++v)
        chain[i][v] = Lanes::load(tile.c + i * tile.row_stride + v * Lanes::width);
    }
  }
  const Real* a = tile.a.data;
  const Real* b = tile.b.data;
  [[maybe_unused]] RowsApart<Real, has_rows_apart ? rows : 1> apart(tile.a);
  for (std::size_t k = 0; k < tile.depth; ++k) {
    Vector columns[vectors];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < vectors; ++v) columns[v] = Lanes::load(b + v * Lanes::width);
    const auto elements = [&] {
      if constexpr (has_rows_apart) {
        return apart;
      } else {
        return Lanes::template load_elements<rows>(a);
      }
    }();
#pragma GCC unroll 16
    for (std::size_t i = 0; i < rows; ++i) {
      const Vector element = Lanes::broadcast(elements[i]);
#pragma GCC unroll 4
      for (std::size_t v = 0; v < vectors; ++v) chain[i][v] = Step::step(element, columns[v], chain[i][v]);
    }
    if constexpr (has_rows_apart) {
      apart.advance(tile.a.step);
    } else {
      a += tile.a.step;
    }
    b += tile.b.step;
  }
  const Vector canonical_nan = Lanes::broadcast(std::numeric_limits<Real>::quiet_NaN());
#pragma GCC unroll 16
  for (std::size_t i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < vectors; ++v) {
      const Vector x = Lanes::select(Lanes::unordered(chain[i][v]), canonical_nan, chain[i][v]);
      Lanes::store(tile.c + i * tile.row_stride + v * Lanes::width, x);
    }
  }
}

template <class Step, class Real, bool has_rows_apart, class Indices>
struct TileVariants;
template <class Step, class Real, bool has_rows_apart, std::size_t... i>
struct TileVariants<Step, Real, has_rows_apart, std::index_sequence<i...>> {
  static constexpr typename TileKernel<Real>::Advance advance[] = {
      &advance_tile<Step, Real, i % Step::rows + 1, i / Step::rows + 1, has_rows_apart>...};
};

template <class Step>
constexpr TileKernel<typename Step::Lanes::Scalar> tile_kernel() {
  using Real = typename Step::Lanes::Scalar;
  using Indices = std::make_index_sequence<Step::rows * Step::vectors>;
  TileKernel<Real> kernel{Step::rows, Step::vectors * Step::Lanes::width, Step::Lanes::width,
                          TileVariants<Step, Real, false, Indices>::advance, true};
  if constexpr (requires { requires Step::takes_rows_apart; })
    kernel.advance_rows = TileVariants<Step, Real, true, Indices>::advance;
  return kernel;
}

}  // namespace
}  // namespace fp16::detail
