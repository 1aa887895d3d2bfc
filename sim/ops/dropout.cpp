#include "sim/ops/dropout.h"

#include <cmath>

namespace sim {
namespace {

/// out = x / (1 - p) where the element's 32 random bits are at least p 2^32, else 0.
void drop(const RoundedOutput& out, const Tensor& x, const RandomStream& of_batch, Shard shard,
          double probability, int threads) {
  const RandomStream random = of_batch.after(shard.index * x.size());
  const auto threshold = static_cast<std::uint64_t>(std::ceil(probability * 0x1p32));
  with_real(is_binary64(x), [&](auto real) {
    using Real = decltype(real);
    const Real factor = static_cast<Real>(1 / (1 - probability));
    for_each_part(out, x.size(), threads, smallest_part_of_elements,
                  [&](const RoundedOutput& part, std::size_t first, std::size_t last) {
                    constexpr std::size_t piece = 2048;
                    Real buffer[piece], results[piece];
                    std::uint32_t bits[piece];
                    for (std::size_t offset = first; offset < last; offset += piece) {
                      const std::size_t n = std::min(piece, last - offset);
                      const Real* values = read(x, offset, n, std::span(buffer));
                      random.fill_bits(offset, std::span(bits, n));
                      for (std::size_t i = 0; i < n; ++i)
                        results[i] = bits[i] >= threshold ? values[i] * factor : Real{0};
                      store(part, offset, std::span<const Real>(results, n));
                    }
                  });
  });
}

Tensor forward(OperationCall& call) {
  const Tensor& x = *call.inputs[0];
  Tensor output(x.shape(), call.output_format);
  drop(call.into(output), x, call.random, call.shard,
       call.training ? call.options.get<DropoutOptions>().probability : 0, call.arithmetic.threads);
  return output;
}

void backward(const OperationGradient& g) {
  drop(g.input_gradients[0], g.output_gradient, g.random, g.shard,
       g.training ? g.options.get<DropoutOptions>().probability : 0, g.arithmetic.threads);
}

UnitMultipliers unit_multipliers(UnitScaledCall& call) {
  return call.rule.dropout(call.options.get<DropoutOptions>().probability);
}

}  // namespace

constinit const Operation dropout{
    .name = "dropout",
    .description = "zeroes elements at random in training and enlarges the others to make up for it",
    .casts = on_no_list,
    .forward = forward,
    .backward = backward,
    .unit_multipliers = unit_multipliers};

}  // namespace sim
