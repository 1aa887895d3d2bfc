#include "sim/ops/channels_last.h"

#include <stdexcept>
#include <string>

#include "sim/ops/groups.h"

namespace sim {
namespace {

/// out = each of `images` matrices of rows x columns in `in`, transposed.
void transpose_images(const RoundedOutput& out, const Tensor& in, std::size_t images, std::size_t rows,
                      std::size_t columns, int threads) {
  with_real(is_binary64(in), [&](auto real) {
    using Real = decltype(real);
    map_groups<Real>(out, images, {&in}, threads, [&](std::size_t, Real* transposed, const auto& inputs) {
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < columns; ++j) transposed[j * rows + i] = inputs[0][i * columns + j];
      }
    });
  });
}

Tensor forward(OperationCall& call) {
  const Tensor& x = *call.inputs[0];
  const Shape& shape = x.shape();
  const auto& [row_length] = call.options.get<ChannelsLastOptions>();
  const std::size_t columns = row_length == 0 ? shape[1] : row_length;
  if (shape[1] % columns != 0) {
    throw std::invalid_argument("channels_last: row_length " + std::to_string(columns) + " for " +
                                std::to_string(shape[1]) + " channels; allowed are divisors of that");
  }
  Tensor output({x.size() / columns, columns}, call.output_format);
  transpose_images(call.into(output), x, shape[0], shape[1], shape[2] * shape[3], call.arithmetic.threads);
  return output;
}

void backward(const OperationGradient& g) {
  const Shape& shape = g.inputs[0]->shape();
  transpose_images(g.input_gradients[0], g.output_gradient, shape[0], shape[2] * shape[3], shape[1],
                   g.arithmetic.threads);
}

}  // namespace

constinit const Operation channels_last{.name = "channels_last",
                                        .description = "N x C x H x W to rows of channels, pixel by pixel",
                                        .casts = on_no_list,
                                        .forward = forward,
                                        .backward = backward,
                                        .unit_multipliers = no_unit_multipliers};

}  // namespace sim
