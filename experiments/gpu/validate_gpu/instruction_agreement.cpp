#include "experiments/gpu/validate_gpu/instruction_agreement.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/gpu/probes/tensor_core.h"
#include "experiments/gpu/validate_gpu/operations.h"
#include "experiments/gpu/validate_gpu/rows.h"

namespace experiments::validate_gpu {
namespace {

namespace cuda = fp16::cuda;

std::size_t row_of(const probes::TensorCoreInstruction& instruction, const probes::InputFamily& family) {
  const std::string operation = tensor_core_operation(instruction, family);
  const auto row = std::ranges::find(rows(), operation, [](const Row& each) { return each.operation->name; });
  return static_cast<std::size_t>(row - rows().begin());
}

bool take_the_same_products(const probes::TensorCoreInstruction& a, const probes::TensorCoreInstruction& b) {
  return a.depth == b.depth && a.accumulator == b.accumulator;
}

}  // namespace

ShardComparison compare_instructions(const ShardFile& shards) {
  ShardComparison sum;
  const auto& instructions = probes::tensor_core_instructions();
  for (const probes::TensorCoreInstruction& instruction : instructions) {
    const auto& first = *std::ranges::find_if(
        instructions, [&](const auto& other) { return take_the_same_products(other, instruction); });
    if (&first == &instruction) continue;
    for (const probes::InputFamily& family : probes::input_families()) {
      if (!family.needs_model()) continue;
      const std::size_t row = row_of(instruction, family);
      add(sum, compare(shards.finished(row), shards.finished(row_of(first, family)), rows()[row].id()));
    }
  }
  return sum;
}

void write_agreement(Run& run, const ShardFile& shards) {
  const ShardComparison agreement = compare_instructions(shards);
  run.record().summary("instruction_shards_compared", agreement.shards_in_both);
  run.record().summary("instruction_shards_differing", agreement.shards_differing);
  if (agreement.shards_differing != 0) {
    const std::string text =
        fmt::format("tensor-core instructions differ on the same dot products in {} of {} shards, first {}",
                    agreement.shards_differing, agreement.shards_in_both, agreement.first_difference);
    run.record().verdict(fmt::format("Among each other, {}.", text));
    run.fail(text);
  } else if (agreement.shards_in_both != 0) {
    run.record().verdict(fmt::format(
        "Tensor-core instructions of one depth and accumulator gave the same bits among each other in all {} "
        "shards of the same dot products.",
        agreement.shards_in_both));
  }
}

}  // namespace experiments::validate_gpu
