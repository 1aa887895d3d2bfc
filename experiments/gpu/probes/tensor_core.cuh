#pragma once
/// The way that every dot product of tensor_core.h goes: into a tile in shared memory, through the instruction,
/// and beside what is expected, all on the device. An instruction is a type as in mma_m16n8.cuh.

#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "experiments/gpu/probes/index.h"
#include "experiments/gpu/probes/report.cuh"
#include "experiments/gpu/probes/tensor_core.h"
#include "experiments/gpu/probes/tensor_core_inputs.h"
#include "experiments/gpu/probes/tensor_core_instructions.h"

namespace experiments::probes {

/// What a device did with one input, for those that ask for it.
struct Observation {
  std::uint32_t expected;
  std::uint32_t found;
  int variant;
};

/// What every kernel below is given. Blocks take the numbers in groups aligned to multiples of what a block takes
/// at once, so that a number's place in its tile, and its neighbours there, depend on it alone.
struct DotSweep {
  DotFamily family;
  inputs::DotShape shape;  ///< not a constant of the kernel, which would unroll every loop over the depth
  DotRange numbers;
  TensorCore core;
  Report* report;
  Observation* observations;  ///< of every number, or null

  __device__ bool contains(std::uint64_t number) const { return number - numbers.first < numbers.count; }
  __device__ std::uint64_t last() const { return numbers.first + numbers.count - 1; }
};

/// What a thread has seen.
template <const Format& Accumulator>
struct Tally {
  using Code = Bits<Accumulator>;

  const DotSweep& sweep;
  ThreadCounts counts;

  __device__ explicit Tally(const DotSweep& of) : sweep(of) {}

  __device__ static bool same_value(Code expected, Code found) {
    return expected == found || (is_nan<Accumulator>(expected) && is_nan<Accumulator>(found));
  }

  /// `result` is the one for the digest.
  __device__ void add(std::uint64_t number, Code result, const Observation& seen) {
    counts.digest += digest_of(number, result, 0);
    if (sweep.observations != nullptr) sweep.observations[number - sweep.numbers.first] = seen;
    if (seen.expected == seen.found) return;
    ++(same_value(static_cast<Code>(seen.expected), static_cast<Code>(seen.found)) ? counts.nan_mismatches
                                                                                   : counts.mismatches);
    sweep.report->keep_lowest(number);
  }

  /// By all threads of a warp.
  __device__ void hand_in() const { sweep.report->add(counts); }
};

/// The operands and the result of one instruction.
template <typename Instruction, const Format& Accumulator>
struct DotTile {
  static constexpr int rows = Instruction::rows, columns = Instruction::columns, depth = Instruction::depth;
  static constexpr int threads = Instruction::threads;
  /// Dot products of different operands in a tile: no two share a row or a column.
  static constexpr int slots = rows < columns ? rows : columns;
  using Value = typename Instruction::Accumulator;
  using Code = Bits<Accumulator>;

  alignas(128) std::uint16_t a[rows * depth];
  alignas(128) std::uint16_t b[depth * columns];
  alignas(128) Value c[rows * columns];
  alignas(128) Value d[rows * columns];

  __device__ void clear() {
    for (int i = threadIdx.x; i < rows * depth; i += threads) a[i] = 0;
    for (int i = threadIdx.x; i < depth * columns; i += threads) b[i] = 0;
    for (int i = threadIdx.x; i < rows * columns; i += threads) c[i] = std::bit_cast<Value>(Code{0});
    __syncthreads();
  }

  /// By all threads, what they have written before being in the tile.
  __device__ void multiply() {
    __syncthreads();
    Instruction::step(a, b, c, d);
    __syncthreads();
  }

  __device__ void set_row(int row, const DotProduct& product) {
    for (int k = 0; k < depth; ++k) a[row * depth + k] = product.a[k];
  }
  __device__ void set_column(int column, const DotProduct& product) {
    for (int k = 0; k < depth; ++k) b[k * columns + column] = product.b[k];
  }
  __device__ void set_addend(int element, std::uint32_t code) {
    c[element] = std::bit_cast<Value>(static_cast<Code>(code));
  }
  __device__ void set(int row, int column, const DotProduct& product) {
    set_row(row, product);
    set_column(column, product);
    set_addend(row * columns + column, product.c);
  }

  __device__ Code result(int element) const { return std::bit_cast<Code>(d[element]); }

  /// The results of the products of all threads, `slots` threads after the other. `place` (0 ... rows * columns - 1)
  /// shifts their places; the elements between keep what was there before.
  __device__ Code results(const DotProduct& product, int place) {
    const int slot = static_cast<int>(threadIdx.x) % slots;
    Code found = 0;
    for (int turn = 0; turn < threads / slots; ++turn) {
      const bool mine = static_cast<int>(threadIdx.x) / slots == turn;
      const int row = (slot + turn + place / columns) % rows, column = (slot + place) % columns;
      if (mine) set(row, column, product);
      multiply();
      if (mine) found = result(row * columns + column);
    }
    return found;
  }
};

/// Compared with the model; any family.
template <typename Instruction, const Format& Accumulator>
__device__ void sweep_dots(const DotSweep& sweep) {
  using Tile = DotTile<Instruction, Accumulator>;
  __shared__ Tile tile;
  tile.clear();
  Tally<Accumulator> tally(sweep);
  std::uint64_t group = sweep.numbers.first / Tile::threads + blockIdx.x;
  for (; group <= sweep.last() / Tile::threads; group += gridDim.x) {
    const std::uint64_t number = group * Tile::threads + threadIdx.x;
    const DotProduct product = inputs::dot_product(sweep.family, number, sweep.shape);
    const auto place = static_cast<int>(group % (Tile::rows * Tile::columns));
    const auto found = tile.results(product, place);
    if (!sweep.contains(number)) continue;
    const auto expected = inputs::model_dot<Accumulator>(sweep.core, sweep.shape.depth, product);
    tally.add(number, found, {.expected = expected, .found = found, .variant = 0});
  }
  __syncwarp();
  tally.hand_in();
}

/// Compared with the model; DotFamily::one_product, with the whole tile for one a and b.
template <typename Instruction, const Format& Accumulator>
__device__ void sweep_products(const DotSweep& sweep) {
  using Tile = DotTile<Instruction, Accumulator>;
  constexpr int elements = Tile::rows * Tile::columns;
  static_assert(inputs::addends_of_a_product % elements == 0);
  __shared__ Tile tile;
  Tally<Accumulator> tally(sweep);
  std::uint64_t group = sweep.numbers.first / elements + blockIdx.x;
  for (; group <= sweep.last() / elements; group += gridDim.x) {
    const std::uint64_t first = group * elements;
    DotProduct product = inputs::one_product(first, sweep.shape);
    for (int row = threadIdx.x; row < Tile::rows; row += Tile::threads) tile.set_row(row, product);
    for (int column = threadIdx.x; column < Tile::columns; column += Tile::threads)
      tile.set_column(column, product);
    for (int i = threadIdx.x; i < elements; i += Tile::threads)
      tile.set_addend(i, inputs::one_product(first + i, sweep.shape).c);
    tile.multiply();
    for (int i = threadIdx.x; i < elements; i += Tile::threads) {
      if (!sweep.contains(first + i)) continue;
      product.c = std::bit_cast<typename Tile::Code>(tile.c[i]);
      const auto found = tile.result(i);
      const auto expected = inputs::model_dot<Accumulator>(sweep.core, sweep.shape.depth, product);
      tally.add(first + i, found, {.expected = expected, .found = found, .variant = 0});
    }
    __syncthreads();
  }
  __syncwarp();
  tally.hand_in();
}

/// Compared with the instruction's other results; the families without model.
template <typename Instruction, const Format& Accumulator>
__device__ void sweep_variants(const DotSweep& sweep) {
  using Tile = DotTile<Instruction, Accumulator>;
  constexpr int elements = Tile::rows * Tile::columns;
  const int step = sweep.core.products_per_step < Tile::depth ? sweep.core.products_per_step : Tile::depth;
  __shared__ Tile tile;
  tile.clear();
  Tally<Accumulator> tally(sweep);
  std::uint64_t group = sweep.numbers.first / Tile::threads + blockIdx.x;
  for (; group <= sweep.last() / Tile::threads; group += gridDim.x) {
    const std::uint64_t number = group * Tile::threads + threadIdx.x;
    const DotProduct product = inputs::dot_product(sweep.family, number, sweep.shape);
    const auto place = static_cast<int>(group % elements);
    const auto result = tile.results(product, place);
    Observation seen{.expected = result, .found = result, .variant = 0};
    for (int variant = 0; variant < inputs::variants(sweep.family, step, elements); ++variant) {
      const DotProduct derived =
          inputs::derived_product<Accumulator>(sweep.family, variant, number, sweep.shape.depth, product);
      const int derived_place = sweep.family == DotFamily::position ? variant : place;
      const auto found = tile.results(derived, derived_place);
      const auto expected = inputs::derived_result<Accumulator>(sweep.family, variant, result, found);
      if (expected != found && seen.expected == seen.found)
        seen = {.expected = expected, .found = found, .variant = variant};
    }
    if (sweep.contains(number)) tally.add(number, result, seen);
  }
  __syncwarp();
  tally.hand_in();
}

// nvcc 13 loses a kernel's template arguments by reference in the code for the host.
#define FP16_DOT_KERNEL(sweep_of_dots, name)                                     \
  template <typename Instruction>                                                \
  __global__ void __launch_bounds__(Instruction::threads) name(DotSweep sweep) { \
    if constexpr (std::is_same_v<typename Instruction::Accumulator, float>) {    \
      sweep_of_dots<Instruction, binary32>(sweep);                               \
    } else {                                                                     \
      sweep_of_dots<Instruction, binary16>(sweep);                               \
    }                                                                            \
  }
FP16_DOT_KERNEL(sweep_dots, compare_dots)
FP16_DOT_KERNEL(sweep_products, compare_products)
FP16_DOT_KERNEL(sweep_variants, compare_variants)
#undef FP16_DOT_KERNEL

/// An instruction's device code.
struct TensorCoreKernels {
  std::string_view name;
  AccumulatorFormat accumulator;
  const void* compare_dots;
  const void* compare_products;
  const void* compare_variants;
  void (*require)(const void* kernel);  ///< throws std::runtime_error if the device cannot run such a kernel
};

template <typename Instruction>
TensorCoreKernels tensor_core_kernels(std::string_view name, void (*require)(const void*)) {
  return {.name = name,
          .accumulator = sizeof(typename Instruction::Accumulator) == 4 ? AccumulatorFormat::binary32
                                                                        : AccumulatorFormat::binary16,
          .compare_dots = reinterpret_cast<const void*>(&compare_dots<Instruction>),
          .compare_products = reinterpret_cast<const void*>(&compare_products<Instruction>),
          .compare_variants = reinterpret_cast<const void*>(&compare_variants<Instruction>),
          .require = require};
}

/// Whether the list of instructions says of `name` what the type says.
template <typename Instruction>
constexpr bool is_listed(std::string_view name) {
#define FP16_SAME_SHAPE(listed, rows_, columns_, depth_, threads_, targets)                                  \
  if (name == #listed)                                                                                       \
    return Instruction::rows == rows_ && Instruction::columns == columns_ && Instruction::depth == depth_ && \
           Instruction::threads == threads_;
  FP16_TENSOR_CORE_INSTRUCTIONS(FP16_SAME_SHAPE)
#undef FP16_SAME_SHAPE
  return false;
}

#define FP16_DECLARE_KERNELS(name, ...) std::vector<TensorCoreKernels> name##_kernels();
FP16_TENSOR_CORE_INSTRUCTIONS(FP16_DECLARE_KERNELS)
#undef FP16_DECLARE_KERNELS

}  // namespace experiments::probes

/// Defines an instruction's kernels, in namespace experiments::probes.
#define FP16_TENSOR_CORE_KERNELS(name, ...)                                              \
  static_assert(is_listed<name##_binary32>(#name) && is_listed<name##_binary16>(#name)); \
  std::vector<TensorCoreKernels> name##_kernels() {                                      \
    return {tensor_core_kernels<name##_binary32>(#name, __VA_ARGS__),                    \
            tensor_core_kernels<name##_binary16>(#name, __VA_ARGS__)};                   \
  }
