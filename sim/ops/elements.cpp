#include "sim/ops/elements.h"

#include <algorithm>
#include <stdexcept>

namespace sim {

namespace {

/// Calls visit(offset, n, values) for pieces of n elements, values[i] those of input i as Real.
template <class Real, class Visit>
void for_each_read_piece(std::size_t first, std::size_t last, std::span<const Tensor* const> inputs,
                         Visit visit) {
  if (inputs.size() > most_inputs) throw std::logic_error("elements: too many inputs");
  std::array<std::array<Real, elements_of_a_piece>, most_inputs> buffers;
  std::array<const Real*, most_inputs> values;
  for (std::size_t offset = first; offset < last; offset += elements_of_a_piece) {
    const std::size_t n = std::min(elements_of_a_piece, last - offset);
    for (std::size_t i = 0; i < inputs.size(); ++i) values[i] = read(*inputs[i], offset, n, buffers[i]);
    visit(offset, n, values.data());
  }
}

/// Computes elements [first, last) where they are stored, as Real.
template <class Real>
void compute_in_place(const RoundedOutput& out, std::size_t first, std::size_t last,
                      std::span<const Tensor* const> inputs, const PieceFunction<Real>& function) {
  const std::span<Real> results = out.tensor->elements<Real>();
  for_each_read_piece<Real>(first, last, inputs,
                            [&](std::size_t offset, std::size_t n, const Real* const* values) {
                              function(offset, results.subspan(offset, n), values);
                            });
  if (out.counts) out.counts->exact += last - first;
}

}  // namespace

template <class Real>
void for_each_computed_piece(std::size_t first, std::size_t last, std::span<const Tensor* const> inputs,
                             const PieceFunction<Real>& function,
                             const std::function<void(std::size_t offset, std::span<const Real>)>& visit) {
  std::array<Real, elements_of_a_piece> results;
  for_each_read_piece<Real>(first, last, inputs,
                            [&](std::size_t offset, std::size_t n, const Real* const* values) {
                              function(offset, std::span(results).first(n), values);
                              visit(offset, std::span<const Real>(results).first(n));
                            });
}

template <class Real>
void map_pieces(const RoundedOutput& out, std::span<const Tensor* const> inputs,
                const PieceFunction<Real>& function, int threads) {
  // A loop whose results lie where its inputs do would be scalar.
  const bool in_place =
      out.tensor->format() == format_of<Real> && std::ranges::find(inputs, out.tensor) == inputs.end();
  for_each_part(out, out.tensor->size(), threads, smallest_part_of_elements,
                [&](const RoundedOutput& part, std::size_t first, std::size_t last) {
                  if (in_place) return compute_in_place(part, first, last, inputs, function);
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
