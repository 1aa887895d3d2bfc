#include "tests/bench/model_products.h"

#include <cstddef>
#include <initializer_list>

namespace bench {
namespace {

struct LinearMap {
  double products;  ///< forward, for one example
  bool has_data_gradient = true;
};

double step(double examples, std::initializer_list<LinearMap> maps) {
  double products = 0;
  for (const LinearMap& map : maps) products += map.products * (map.has_data_gradient ? 3 : 2);
  return examples * products;
}

double mlp() {
  return step(128, {{784 * 512, false}, {512 * 256}, {256 * 10}});
}

/// 3x3 convolutions: output pixels x 9 input channels x output channels.
double cnn() {
  return step(64, {{28 * 28 * 9.0 * 1 * 16, false},
                   {14 * 14 * 9.0 * 16 * 32},
                   {7 * 7 * 9.0 * 32 * 32},
                   {7 * 7 * 9.0 * 32 * 64},
                   {64 * 10}});
}

/// Tokens; four blocks of width 128: query, key, value, output; the MLP; scores and context over 64 tokens.
double transformer() {
  constexpr double width = 128, vocabulary = 67, context = 64;
  return step(16 * context, {{4 * 4 * width * width},
                             {4 * 2 * width * (4 * width)},
                             {4 * 2 * context * width},
                             {vocabulary * width}});
}

}  // namespace

double products_of_step(std::string_view model) {
  if (model == "mlp") return mlp();
  if (model == "cnn") return cnn();
  if (model == "transformer") return transformer();
  return 0;
}

}  // namespace bench
