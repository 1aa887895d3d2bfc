#include "sim/ops/operation_options.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/ops/conv2d.h"
#include "sim/ops/embedding.h"
#include "tests/sim/ops/evaluation.h"

using sim::Conv2dOptions;
using sim::EmbeddingOptions;
using sim::OperationOptions;

TEST_CASE("operation options: what was given is what is read, by any copy and after the original") {
  OperationOptions copy;
  const EmbeddingOptions* held = nullptr;
  {
    const OperationOptions original = EmbeddingOptions{.labels = {3, 1, 4}};
    copy = original;
    held = &original.get<EmbeddingOptions>();
  }
  CHECK(copy.get<EmbeddingOptions>().labels == std::vector<std::int32_t>{3, 1, 4});
  CHECK(&copy.get<EmbeddingOptions>() == held);  // shared, not copied
}

TEST_CASE("operation options: where none are given, each operation has its defaults") {
  const OperationOptions none;
  CHECK(none.get<Conv2dOptions>().stride == 1);
  CHECK(none.get<Conv2dOptions>().padding == 0);
  CHECK(none.get<EmbeddingOptions>().labels.empty());
}

TEST_CASE("operation options: those of another operation are refused, both named") {
  const OperationOptions options = EmbeddingOptions{};
  CHECK_THROWS_WITH_AS(options.get<Conv2dOptions>(),
                       "options of an operation: sim::EmbeddingOptions given, sim::Conv2dOptions expected",
                       std::logic_error);
  const sim::Tensor x = sim::Tensor::zeros({1, 1, 3, 3}, fp16::binary32);
  CHECK_THROWS_AS(Evaluation(sim::conv2d, {x, x}, options), std::logic_error);
}

TEST_CASE("operation options: only structs of options become one") {
  CHECK(std::is_convertible_v<Conv2dOptions, OperationOptions>);
  CHECK_FALSE(std::is_convertible_v<int, OperationOptions>);
  CHECK_FALSE(std::is_convertible_v<std::string, OperationOptions>);
}
