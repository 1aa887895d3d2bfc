#pragma once
/// Kernels of matrix products over lanes, written once for all instruction sets: `Lanes` is what one offers for
/// vectors of outputs.

#include "fp16/vector/gemm_chains.h"
#include "fp16/vector/gemm_tensor_core.h"

namespace fp16::detail {
namespace {

/// A tile has rows times two vectors of chains, which with what a step needs must fit into the registers: three
/// quarters of them where a step is one instruction, half where it needs registers for what it computes.
template <class L>
struct FmaChain {
  using Lanes = L;
  static constexpr std::size_t vectors = 2, rows = Lanes::registers * 3 / 4 / vectors;
  using Vector = typename Lanes::Vector;
  static constexpr bool takes_rows_apart = requires { Lanes::broadcasts_from_memory; };
  struct Environment {};
  static Vector step(Vector a, Vector b, Vector c) { return Lanes::fma(a, b, c); }
};

template <class L>
struct Fp16Chain {
  using Lanes = L;
  static constexpr std::size_t vectors = 2, rows = Lanes::registers / 2 / vectors;
  using Vector = typename Lanes::Vector;
  struct Environment {};
};

/// Rounding to odd at 24 bits and then to binary16 is one rounding of the exact value, because 24 >= 11 + 2
/// (Boldo and Melquiond 2008).
template <class Lanes>
struct Fp16FmaChain : Fp16Chain<Lanes> {
  using Vector = typename Lanes::Vector;
  using Environment = typename Lanes::FmaEnvironment;
  static Vector step(Vector a, Vector b, Vector c) {
    return Lanes::round_to_half(Lanes::fma_of_halves(a, b, c));
  }
};

/// The product is exact in binary32, and rounding the binary32 sum of two halves is rounding their exact sum,
/// because 24 >= 2 * 11 + 2 (Figueroa 1995).
template <class Lanes>
struct Fp16MulAddChain : Fp16Chain<Lanes> {
  using Vector = typename Lanes::Vector;
  static Vector step(Vector a, Vector b, Vector c) {
    return Lanes::round_to_half(Lanes::round_to_half(a * b) + c);
  }
};

template <class Floats, class Doubles, class Fp16Fma = Fp16FmaChain<Floats>,
          class Fp16MulAdd = Fp16MulAddChain<Floats>>
constexpr TileKernels tile_kernels() {
  return {
      .fp32_fma_chain = tile_kernel<FmaChain<Floats>>(),
      .fp16_fma_chain = tile_kernel<Fp16Fma>(),
      .fp16_mul_add_chain = tile_kernel<Fp16MulAdd>(),
      .fp64_fma_chain = tile_kernel<FmaChain<Doubles>>(),
      .tensor_core = tensor_core_kernel<Floats>(),
  };
}

}  // namespace
}  // namespace fp16::detail
