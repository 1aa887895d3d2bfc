#include "sim/ops/elements.h"

#include <algorithm>
#include <stdexcept>

namespace sim {

template <class Real>
void for_each_computed_piece(std::size_t first, std::size_t last, std::span<const Tensor* const> inputs,
                             const PieceFunction<Real>& function,
                             const std::function<void(std::size_t offset, std::span<const Real>)>& visit) {
  if (inputs.size() > most_inputs) throw std::logic_error("elements: too many inputs");
  Real results[elements_of_a_piece];
  std::array<std::array<Real, elements_of_a_piece>, most_inputs> buffers;
  std::array<const Real*, most_inputs> values;
  for (std::size_t offset = first; offset < last; offset += elements_of_a_piece) {
    const std::size_t n = std::min(elements_of_a_piece, last - offset);
    for (std::size_t i = 0; i < inputs.size(); ++i) values[i] = read(*inputs[i], offset, n, buffers[i]);
    function(offset, std::span(results, n), values.data());
    visit(offset, std::span<const Real>(results, n));
  }
}

template <class Real>
void map_pieces(const RoundedOutput& out, std::span<const Tensor* const> inputs,
                const PieceFunction<Real>& function, int threads) {
  for_each_part(out, out.tensor->size(), threads, smallest_part_of_elements,
                [&](const RoundedOutput& part, std::size_t first, std::size_t last) {
                  for_each_computed_piece<Real>(first, last, inputs, function,
                                                [&](std::size_t offset, std::span<const Real> results) {
                                                  store(part, offset, results);
                                                });
                });
}

#define HALFLAB_INSTANTIATE(Real)                                                                            \
  template void for_each_computed_piece(std::size_t, std::size_t, std::span<const Tensor* const>,            \
                                        const PieceFunction<Real>&,                                          \
                                        const std::function<void(std::size_t, std::span<const Real>)>&);     \
  template void map_pieces(const RoundedOutput&, std::span<const Tensor* const>, const PieceFunction<Real>&, \
                           int);
HALFLAB_INSTANTIATE(float)
HALFLAB_INSTANTIATE(double)
#undef HALFLAB_INSTANTIATE

}  // namespace sim
