#include "experiments/validate_gpu/instruction_agreement.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/validate_gpu/operations.h"
#include "experiments/validate_gpu/rows.h"
#include "fp16/cuda/tensor_core.h"

namespace experiments::validate_gpu {
namespace {

namespace cuda = fp16::cuda;

std::size_t row_of(const cuda::TensorCoreInstruction& instruction, const cuda::InputFamily& family) {
  const std::string operation = tensor_core_operation(instruction, family);
  const auto row = std::ranges::find(rows(), operation, [](const Row& each) { return each.operation->name; });
  return static_cast<std::size_t>(row - rows().begin());
}

bool take_the_same_products(const cuda::TensorCoreInstruction& a, const cuda::TensorCoreInstruction& b) {
  return a.depth == b.depth && a.accumulator == b.accumulator;
}

}  // namespace

ShardComparison compare_instructions(const ShardFile& shards) {
  ShardComparison sum;
  const auto& instructions = cuda::tensor_core_instructions();
  for (const cuda::TensorCoreInstruction& instruction : instructions) {
    const auto& first = *std::ranges::find_if(
        instructions, [&](const auto& other) { return take_the_same_products(other, instruction); });
    if (&first == &instruction) continue;
    for (const cuda::InputFamily& family : cuda::input_families()) {
      if (!family.needs_model()) continue;
      const std::size_t row = row_of(instruction, family);
      add(sum, compare(shards.finished(row), shards.finished(row_of(first, family)), rows()[row].id()));
    }
  }
  return sum;
}

}  // namespace experiments::validate_gpu
