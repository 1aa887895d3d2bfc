#include "fp16/cuda/streaming.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "fp16/cuda/histogram.h"

namespace cuda = fp16::cuda;

TEST_CASE("streaming: tensors are cut into chunks that cover each element once") {
  using Tensor = cuda::GradientTensor<float>;
  std::vector<std::uint16_t> scaled(3 * cuda::chunk_size);
  std::vector<float> unscaled(scaled.size());
  const std::vector<Tensor> tensors{{scaled.data(), unscaled.data(), 2 * cuda::chunk_size + 1},
                                    {scaled.data(), unscaled.data(), 0},
                                    {scaled.data() + 5, unscaled.data() + 7, cuda::chunk_size}};
  const std::vector<Tensor> chunks = cuda::chunks_of(std::span(tensors));
  REQUIRE(chunks.size() == 4);
  CHECK(chunks[1].scaled == scaled.data() + cuda::chunk_size);
  CHECK(chunks[1].count == cuda::chunk_size);
  CHECK(chunks[2].unscaled == unscaled.data() + 2 * cuda::chunk_size);
  CHECK(chunks[2].count == 1);
  CHECK(chunks[3].scaled == scaled.data() + 5);
  CHECK(chunks[3].unscaled == unscaled.data() + 7);
  CHECK(chunks[3].count == cuda::chunk_size);
}

TEST_CASE("histogram: scales beyond binary32's normal powers of two are refused") {
  CHECK_THROWS_AS(cuda::FloatHistogram(128), std::invalid_argument);
  CHECK_THROWS_AS(cuda::FloatHistogram(-127), std::invalid_argument);
}
