#pragma once
/// Clipping of gradients, which belongs between unscaling and the optimizer. The functions take gradients as
/// they are: called on gradients that still carry the loss scale S, they clip S times too early, at max_norm
/// / S or limit / S, and what the optimizer then gets after unscaling is a gradient whose norm falls as S
/// rises.

#include <cstdint>
#include <span>

namespace sim {

struct NormClipping {
  double norm = 0;         ///< of all gradients together, before clipping
  double coefficient = 1;  ///< what they were multiplied by
};

/// Multiplies all gradients by max_norm / (norm + 1e-6) where that is less than 1, as
/// torch.nn.utils.clip_grad_norm_.
///
/// norm is the Euclidean one, in binary64: squares (exact, of floats) go to 16 partial sums, that of element
/// i to number i mod 16, each gradient's elements in ascending order and gradients in theirs; then the sums
/// are added in ascending order. Division, sum and root round once in binary64; the coefficient is rounded to
/// the gradients' type, and so is each product. With an infinite gradient the coefficient is 0, which makes
/// the infinite ones NaN and the others 0; with a NaN all become NaN. Throws std::invalid_argument unless
/// max_norm is positive and finite.
NormClipping clip_by_norm(std::span<const std::span<float>> gradients, double max_norm);
NormClipping clip_by_norm(std::span<const std::span<double>> gradients, double max_norm);

/// Replaces what lies outside [-limit, limit] by the nearer end, rounded to the gradients' type, as
/// torch.nn.utils.clip_grad_value_. NaNs stay. Returns how many gradients were replaced.
/// Throws std::invalid_argument unless limit is positive and finite.
std::uint64_t clip_by_value(std::span<const std::span<float>> gradients, double limit);
std::uint64_t clip_by_value(std::span<const std::span<double>> gradients, double limit);

}  // namespace sim
