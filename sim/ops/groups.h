#pragma once
/// Loops over groups: rows, planes or images, each a contiguous part of every tensor involved.

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "fp16/config.h"
#include "sim/ops/sums.h"
#include "sim/tensor/tensor.h"

namespace sim {

/// Where to compute elements of `tensor` from `offset` on before they are stored: in its own storage when
/// that holds Real, else in `buffer`.
template <class Real>
Real* place_of(Tensor& tensor, std::size_t offset, std::span<Real> buffer) {
  return tensor.format() == format_of<Real> ? tensor.elements<Real>().data() + offset : buffer.data();
}

/// values[i] = function(values[i], others[i]...).
template <class Real, class Function, class... Others>
FP16_VECTOR_CLONES void apply_in_place(Function function, std::size_t count, Real* values,
                                       const Others*... others) {
  for (std::size_t i = 0; i < count; ++i) values[i] = function(values[i], others[i]...);
}

/// The parts of `groups` groups of `group_size` elements, each on a thread of its own where that pays.
template <class Visit>
void for_each_part_of_groups(const RoundedOutput& out, std::size_t groups, std::size_t group_size,
                             int threads, Visit visit) {
  for_each_part(out, groups, threads, (smallest_part_of_elements + group_size - 1) / group_size, visit);
}

/// Calls visit(group, results, inputs...) for each group, with pointers to that group's elements of the
/// output and of the inputs; all tensors consist of `groups` groups. Computed in Real, rounded once.
template <class Real, std::size_t Count, class Visit>
void map_groups(const RoundedOutput& out, std::size_t groups, const std::array<const Tensor*, Count>& inputs,
                int threads, Visit visit) {
  if (groups == 0) return;
  const std::size_t size = out.tensor->size() / groups;
  std::array<std::size_t, Count> input_sizes;
  std::ranges::transform(inputs, input_sizes.begin(), [&](const Tensor* t) { return t->size() / groups; });
  const std::size_t largest = std::max({size, std::size_t{1}, std::ranges::max(input_sizes)});
  const std::size_t block = std::max<std::size_t>(1, 4096 / largest);
  for_each_part_of_groups(
      out, groups, largest, threads, [&](const RoundedOutput& part, std::size_t first, std::size_t last) {
        std::vector<Real> results(block * size);
        std::array<std::vector<Real>, Count> buffers;
        for (std::size_t i = 0; i < Count; ++i) buffers[i].resize(block * input_sizes[i]);
        for (std::size_t group = first; group < last; group += block) {
          const std::size_t n = std::min(block, last - group);
          Real* place = place_of<Real>(*out.tensor, group * size, results);
          std::array<const Real*, Count> values;
          for (std::size_t i = 0; i < Count; ++i) {
            values[i] =
                read(*inputs[i], group * input_sizes[i], n * input_sizes[i], std::span<Real>(buffers[i]));
          }
          for (std::size_t k = 0; k < n; ++k) {
            visit(group + k, place + k * size, values);
            for (std::size_t i = 0; i < Count; ++i) values[i] += input_sizes[i];
          }
          store(part, group * size, std::span<const Real>(place, n * size));
        }
      });
}

}  // namespace sim
