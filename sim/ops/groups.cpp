#include "sim/ops/groups.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

namespace sim {

void for_each_part_of_groups(
    const RoundedOutput& out, std::size_t groups, std::size_t group_size, int threads,
    const std::function<void(const RoundedOutput& out, std::size_t first, std::size_t last)>& visit) {
  for_each_part(out, groups, threads, (smallest_part_of_elements + group_size - 1) / group_size, visit);
}

namespace {

/// Groups [first, last), read and stored a block of groups at a time.
template <class Real>
void map_part_of_groups(const RoundedOutput& out, std::size_t size, std::size_t block,
                        std::span<const Tensor* const> inputs, std::span<const std::size_t> input_sizes,
                        std::size_t first, std::size_t last, const GroupFunction<Real>& function) {
  std::vector<Real> results(block * size);
  std::array<std::vector<Real>, most_inputs> buffers;
  for (std::size_t i = 0; i < inputs.size(); ++i) buffers[i].resize(block * input_sizes[i]);
  for (std::size_t group = first; group < last; group += block) {
    const std::size_t n = std::min(block, last - group);
    Real* place = place_of<Real>(*out.tensor, group * size, results);
    std::array<const Real*, most_inputs> values;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      values[i] = read(*inputs[i], group * input_sizes[i], n * input_sizes[i], std::span<Real>(buffers[i]));
    }
    for (std::size_t k = 0; k < n; ++k) {
      function(group + k, place + k * size, values.data());
      for (std::size_t i = 0; i < inputs.size(); ++i) values[i] += input_sizes[i];
    }
    store(out, group * size, std::span<const Real>(place, n * size));
  }
}

}  // namespace

template <class Real>
void map_groups(const RoundedOutput& out, std::size_t groups, std::initializer_list<const Tensor*> inputs,
                int threads, const GroupFunction<Real>& function) {
  if (inputs.size() > most_inputs) throw std::logic_error("map_groups: too many inputs");
  if (groups == 0) return;
  const std::size_t size = out.tensor->size() / groups;
  std::vector<std::size_t> input_sizes;
  for (const Tensor* input : inputs) input_sizes.push_back(input->size() / groups);
  const std::size_t largest = std::max({size, std::size_t{1}, std::ranges::max(input_sizes)});
  const std::size_t block = std::max<std::size_t>(1, 4096 / largest);
  for_each_part_of_groups(out, groups, largest, threads,
                          [&](const RoundedOutput& part, std::size_t first, std::size_t last) {
                            map_part_of_groups(part, size, block, std::span(inputs.begin(), inputs.size()),
                                               input_sizes, first, last, function);
                          });
}

template void map_groups(const RoundedOutput&, std::size_t, std::initializer_list<const Tensor*>, int,
                         const GroupFunction<float>&);
template void map_groups(const RoundedOutput&, std::size_t, std::initializer_list<const Tensor*>, int,
                         const GroupFunction<double>&);

}  // namespace sim
