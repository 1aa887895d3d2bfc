#pragma once
/// Sums and dot products on the device, each the twin of a software function bit for bit, NaNs aside, where its
/// order is stated. Arrays of codes lie in the host's memory and are copied.
///
/// Errors: std::invalid_argument if sizes do not fit together, std::runtime_error as in device.h.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace fp16::cuda {

/// The lanes of a block in the two functions below.
inline constexpr std::size_t tree_width = 256;

/// The sum by `fp16::sum_blocked_tree<binary16, tree_width>` (sum.h), each addition rounded to nearest-even.
std::uint16_t sum_blocked_tree(std::span<const std::uint16_t> values);

/// The sum in that order of the products a[i] * b[i], each rounded to binary16 before it is added: no fused
/// multiply-add anywhere.
std::uint16_t dot_blocked_tree(std::span<const std::uint16_t> a, std::span<const std::uint16_t> b);

/// Where atomicAdd adds: a half or a half2, in global memory or first in each block's shared memory.
enum class AtomicTarget { half_in_global, half2_in_global, half_in_shared, half2_in_shared };

/// Every value added to one address, which holds +0, by a thread of its own: the first number is the sum. A
/// half2 has the negated values added in the second number, while the half beside a half stays +0. In which
/// order is not stated, so that the sum is only certain where every partial sum is a half.
std::array<std::uint16_t, 2> sum_by_atomics(std::span<const std::uint16_t> values, AtomicTarget target);

}  // namespace fp16::cuda
