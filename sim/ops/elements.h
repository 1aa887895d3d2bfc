#pragma once
/// Loops over the elements of arrays and tensors. What they compute is compiled for several vector widths; no
/// bit depends on which one runs.

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>

#include "fp16/config.h"
#include "sim/tensor/tensor.h"

namespace sim {

/// results[i] = function(inputs[i]...).
template <class Real, class Function, class... Inputs>
FP16_VECTOR_CLONES void apply_to_each(Function function, std::size_t count, Real* results,
                                      const Inputs*... inputs) {
  for (std::size_t i = 0; i < count; ++i) results[i] = function(inputs[i]...);
}

/// values[i] = function(values[i], others[i]...).
template <class Real, class Function, class... Others>
FP16_VECTOR_CLONES void apply_in_place(Function function, std::size_t count, Real* values,
                                       const Others*... others) {
  for (std::size_t i = 0; i < count; ++i) values[i] = function(values[i], others[i]...);
}

/// Computes elements [offset, offset + results.size()) from pointers to those of each input.
template <class Real>
using PieceFunction =
    std::function<void(std::size_t offset, std::span<Real> results, const Real* const* inputs)>;

/// The PieceFunction of function(inputs[0][i], ..., inputs[Count - 1][i]).
template <class Real, std::size_t Count, class Function>
PieceFunction<Real> elementwise(Function function) {
  return [function](std::size_t, std::span<Real> results, const Real* const* inputs) {
    [&]<std::size_t... input>(std::index_sequence<input...>) {
      apply_to_each(function, results.size(), results.data(), inputs[input]...);
    }
    (std::make_index_sequence<Count>());
  };
}

inline constexpr std::size_t elements_of_a_piece = 2048;
inline constexpr std::size_t most_inputs = 4;  ///< of one PieceFunction

/// Computes elements [first, last) and calls visit(offset, elements) for each piece of them in turn. The inputs
/// have `last` elements or more. Real is float or double.
template <class Real>
void for_each_computed_piece(std::size_t first, std::size_t last, std::span<const Tensor* const> inputs,
                             const PieceFunction<Real>& function,
                             const std::function<void(std::size_t offset, std::span<const Real>)>& visit);

/// Computes all elements of the output, a piece at a time, and rounds each once; on up to `threads` threads.
/// The inputs are shaped like the output. Real is float or double.
template <class Real>
void map_pieces(const RoundedOutput& out, std::span<const Tensor* const> inputs,
                const PieceFunction<Real>& function, int threads);

/// out[i] = function(inputs[0][i], inputs[1][i], ...), computed in Real and rounded once.
template <class Real, std::size_t Count, class Function>
void map_elements(const RoundedOutput& out, const std::array<const Tensor*, Count>& inputs, Function function,
                  int threads = 1) {
  map_pieces<Real>(out, inputs, elementwise<Real, Count>(function), threads);
}

}  // namespace sim
