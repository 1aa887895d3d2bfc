#include "fp16/cuda/mma.cuh"

namespace fp16::cuda {

namespace {

template <typename Accumulator>
void run_mma(const MmaTiles<Accumulator>& tiles) {
  if (tiles.depth != 8 && tiles.depth != 16)
    throw std::invalid_argument("mma depth: " + std::to_string(tiles.depth) + ", allowed are 8 and 16");
  const auto depth = static_cast<std::size_t>(tiles.depth);
  const std::size_t count = tiles.d.size() / (mma_rows * mma_columns);
  if (tiles.d.size() % (mma_rows * mma_columns) != 0 || tiles.c.size() != tiles.d.size() ||
      tiles.a.size() != count * mma_rows * depth || tiles.b.size() != count * depth * mma_columns)
    throw std::invalid_argument("mma: the arrays do not hold equally many whole tiles");
  if (depth == 8) return mma_m16n8k8(tiles);
  mma_m16n8k16(tiles);
}

}  // namespace

void mma(const MmaTiles<float>& tiles) {
  run_mma(tiles);
}
void mma(const MmaTiles<std::uint16_t>& tiles) {
  run_mma(tiles);
}

}  // namespace fp16::cuda
