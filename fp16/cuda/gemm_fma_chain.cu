/// Matrix products by fused multiply-adds, one for every k and output: of binary32 numbers, and of binary16
/// ones two columns at a time (HFMA2).
///
/// A block of 16 x 16 threads makes a tile of 128 rows by 128 words, a word being a float or two neighbouring
/// columns; a thread has 8 x 8 of them, in four groups of 4 x 4 so that a warp reads neighbouring words. Of 8
/// of k, the next are loaded into registers while these are multiplied from shared memory: 4 loads of 16
/// bytes for 64 multiply-adds.

#include "fp16/cuda/gemm_tile.cuh"

namespace fp16::cuda {

namespace {

constexpr unsigned side = 16;  // of a block
constexpr unsigned threads = side * side;
constexpr unsigned tile_rows = 128, tile_words = 128, tile_k = 8;
constexpr unsigned group = 4;  // neighbouring rows or words of a thread
constexpr unsigned groups = tile_rows / (side * group);
// Two threads load the first and last four of k of a row of A: four words of padding keep their banks apart.
constexpr unsigned padding = 4;

/// c = a * b + c in binary32.
struct FmaBinary32 {
  using Value = float;
  using Word = float;
  static constexpr unsigned columns = 1;  ///< of a word

  __device__ static Word broadcast(Value value) { return value; }
  __device__ static Word fma(Word a, Word b, Word c) { return __fmaf_rn(a, b, c); }
};

/// A chain in binary16, for two columns: the first in the low half of a word.
struct FmaBinary16 {
  using Value = std::uint16_t;
  using Word = std::uint32_t;
  static constexpr unsigned columns = 2;

  __device__ static Word broadcast(Value code) { return code | Word{code} << 16; }
  __device__ static Word fma(Word a, Word b, Word c) {
    Word d;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
  }
};

/// The operands of tile_k of k. A is transposed, each value in all columns of a word.
template <typename Fma>
struct Stage {
  using Value = typename Fma::Value;
  using Word = typename Fma::Word;
  using Values = GemmRun<Value, group>;
  using Words = GemmRun<Value, group * Fma::columns>;

  alignas(16) Word a[tile_k][tile_rows + padding];
  alignas(16) Word b[tile_k][tile_words];

  /// What a thread brings: four of k of a row of A, four words of a row of B.
  struct Part {
    Values a;
    Words b;
  };

  __device__ static Part load(const GemmMatrix<const Value>& a, const GemmMatrix<const Value>& b,
                              const GemmTileOrigin& origin, unsigned k) {
    return {load_run<group>(a, origin.row + threadIdx.x / 2, k + threadIdx.x % 2 * group),
            load_run<group * Fma::columns>(b, k + threadIdx.x / 32,
                                           origin.column + threadIdx.x % 32 * group * Fma::columns)};
  }
  __device__ void store(const Part& part) {
#pragma unroll
    for (unsigned i = 0; i < group; ++i)
      a[threadIdx.x % 2 * group + i][threadIdx.x / 2] = Fma::broadcast(part.a.values[i]);
    *reinterpret_cast<Words*>(&b[threadIdx.x / 32][threadIdx.x % 32 * group]) = part.b;
  }
};

/// A thread's words of D: row i and word j are the i % 4-th and j % 4-th of group i / 4 and j / 4.
template <typename Fma>
struct ThreadTile {
  using Word = typename Fma::Word;

  Word sums[groups * group][groups * group] = {};

  /// First number of the block's row of threads, or of its column.
  __device__ static unsigned first(unsigned number, unsigned thread) {
    return number * side * group + thread * group;
  }

  __device__ void multiply(const Stage<Fma>& stage, unsigned k) {
    GemmRun<Word, group> a[groups], b[groups];
#pragma unroll
    for (unsigned i = 0; i < groups; ++i) {
      a[i] = *reinterpret_cast<const GemmRun<Word, group>*>(&stage.a[k][first(i, threadIdx.x / side)]);
      b[i] = *reinterpret_cast<const GemmRun<Word, group>*>(&stage.b[k][first(i, threadIdx.x % side)]);
    }
#pragma unroll
    for (unsigned i = 0; i < groups * group; ++i) {
#pragma unroll
      for (unsigned j = 0; j < groups * group; ++j)
        sums[i][j] = Fma::fma(a[i / group].values[i % group], b[j / group].values[j % group], sums[i][j]);
    }
  }

  __device__ void store(const GemmMatrix<typename Fma::Value>& d, const GemmTileOrigin& origin) const {
    using Words = typename Stage<Fma>::Words;
#pragma unroll
    for (unsigned i = 0; i < groups * group; ++i) {
#pragma unroll
      for (unsigned j = 0; j < groups; ++j) {
        GemmRun<Word, group> words;
#pragma unroll
        for (unsigned word = 0; word < group; ++word) words.values[word] = sums[i][j * group + word];
        store_run<group * Fma::columns>(d, origin.row + first(i / group, threadIdx.x / side) + i % group,
                                        origin.column + first(j, threadIdx.x % side) * Fma::columns,
                                        __builtin_bit_cast(Words, words));
      }
    }
  }
};

template <typename Fma>
__global__ void __launch_bounds__(threads, 2)
    fma_chain(GemmShape shape, const typename Fma::Value* a_values, const typename Fma::Value* b_values,
              typename Fma::Value* d_values) {
  using Value = typename Fma::Value;
  __shared__ Stage<Fma> stages[2];
  const GemmMatrix<const Value> a{a_values, shape.m, shape.k}, b{b_values, shape.k, shape.n};
  const GemmTileOrigin origin = tile_of_block<tile_rows, tile_words * Fma::columns>(shape);

  ThreadTile<Fma> tile;
  unsigned current = 0;
  stages[current].store(Stage<Fma>::load(a, b, origin, 0));
  for (unsigned k = 0; k < shape.k; k += tile_k) {
    __syncthreads();
    const auto next = Stage<Fma>::load(a, b, origin, k + tile_k);  // zeros behind the last
    if (shape.k - k >= tile_k) {
#pragma unroll
      for (unsigned i = 0; i < tile_k; ++i) tile.multiply(stages[current], i);
    } else {
      // Not a step more than k needs: one of zeros would turn a sum of -0 into +0.
      for (unsigned i = 0; i < shape.k - k; ++i) tile.multiply(stages[current], i);
    }
    current ^= 1;
    stages[current].store(next);
  }
  tile.store({d_values, shape.m, shape.n}, origin);
}

template <typename Fma>
GemmLaunch launch_of() {
  return {.kernel = reinterpret_cast<const void*>(&fma_chain<Fma>),
          .tile_m = tile_rows,
          .tile_n = tile_words * Fma::columns,
          .threads = threads};
}

}  // namespace

GemmLaunch gemm_fma_chain_launch(const GemmKernel& kernel, const GemmArguments&) {
  return kernel.operands == binary32 ? launch_of<FmaBinary32>() : launch_of<FmaBinary16>();
}

}  // namespace fp16::cuda
