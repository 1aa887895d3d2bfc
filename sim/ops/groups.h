#pragma once
/// Loops over groups: rows, planes or images, each a contiguous part of every tensor involved.

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <span>

#include "sim/ops/elements.h"
#include "sim/tensor/tensor.h"

namespace sim {

/// Where to compute elements of `tensor` from `offset` on before they are stored: in its own storage when
/// that holds Real, else in `buffer`.
template <class Real>
Real* place_of(Tensor& tensor, std::size_t offset, std::span<Real> buffer) {
  return tensor.format() == format_of<Real> ? tensor.elements<Real>().data() + offset : buffer.data();
}

/// Calls visit(out, first, last) for parts of `groups` groups of `group_size` elements, each on a thread of its
/// own where that pays.
void for_each_part_of_groups(
    const RoundedOutput& out, std::size_t groups, std::size_t group_size, int threads,
    const std::function<void(const RoundedOutput& out, std::size_t first, std::size_t last)>& visit);

/// Computes the elements of a group of the output from pointers to that group's elements of each input.
template <class Real>
using GroupFunction = std::function<void(std::size_t group, Real* results, const Real* const* inputs)>;

/// Computes each group of the output and rounds it once; all tensors consist of `groups` groups. At most
/// most_inputs inputs. Real is float or double.
template <class Real>
void map_groups(const RoundedOutput& out, std::size_t groups, std::initializer_list<const Tensor*> inputs,
                int threads, const GroupFunction<Real>& function);

}  // namespace sim
