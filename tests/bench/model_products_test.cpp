#include "tests/bench/model_products.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "experiments/training/training_setup.h"

namespace {

double counted(std::string_view model) {
  experiments::TrainingOptions options{.model = std::string(model)};
  const experiments::TrainingSetup setup(options);
  return bench::products_of(bench::product_shapes(setup.model(), setup.trainer({}).next_batch()));
}

}  // namespace

// Counted by hand: three passes over every linear map, two over a first layer that sees data.

TEST_CASE("model products: the mlp, whose first layer has no data gradient") {
  CHECK(counted("mlp") == 128 * (2 * 784 * 512 + 3 * (512 * 256 + 256 * 10)));
  CHECK(counted("mlp:hidden1=32:hidden2=16") == 128 * (2 * 784 * 32 + 3 * (32 * 16 + 16 * 10)));
}

TEST_CASE("model products: the autoencoder") {
  CHECK(counted("autoencoder") ==
        512 * (2 * 784 * 256 + 3 * (256 * 64 + 64 * 16 + 16 * 64 + 64 * 256 + 256.0 * 784)));
}

TEST_CASE("model products: the cnn, output pixels by kernels of 3x3 by channels") {
  CHECK(counted("cnn") ==
        64 * (2 * 28 * 28 * 9.0 * 16 +
              3 * (14 * 14 * 9.0 * 16 * 32 + 7 * 7 * 9.0 * 32 * 32 + 7 * 7 * 9.0 * 32 * 64 + 64 * 10)));
}

TEST_CASE("model products: the ssd, pairs of convolutions and heads on two maps") {
  const auto kernels = [](double in, double out) { return 9 * in * out; };
  const double backbone = 64 * 64 * (2 * kernels(3, 16) + 3 * kernels(16, 16)) +
                          32 * 32 * 3 * (kernels(16, 32) + kernels(32, 32)) +
                          16 * 16 * 3 * (kernels(32, 64) + kernels(64, 64)) +
                          (8 * 8 + 4 * 4) * 3 * 2 * kernels(64, 64);
  const double outputs =
      4 * (4 + 4);  // of a cell: four anchors, each with background, three classes, four offsets
  CHECK(counted("ssd") == 16 * (backbone + (8 * 8 + 4 * 4) * 3 * kernels(64, outputs)));
}

TEST_CASE("model products: the transformer, attention as the full square") {
  constexpr double width = 128, vocabulary = 67, context = 64;
  const double block = 4 * width * width + 2 * width * (4 * width) + 2 * context * width;
  CHECK(counted("transformer") == 16 * context * 3 * (4 * block + vocabulary * width));
  CHECK(counted("transformer:layers=2:heads=8") == 16 * context * 3 * (2 * block + vocabulary * width));
}

TEST_CASE("model products: the lstm, four gates from input and state") {
  constexpr double width = 128, vocabulary = 67, context = 64;
  CHECK(counted("lstm") == 16 * context * 3 * (2 * 4 * width * (2 * width) + vocabulary * width));
}
