#include "experiments/gpu/validate_gpu/tensor_core_drivers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "experiments/gpu/probes/sweep.h"
#include "experiments/gpu/probes/tensor_core.h"
#include "experiments/gpu/validate_gpu/operations.h"
#include "experiments/gpu/validate_gpu/rows.h"
#include "experiments/gpu/validate_gpu/swept_answers.h"
#include "fp16/cuda/device.h"

namespace experiments::validate_gpu {
namespace {

namespace cuda = fp16::cuda;

NumberType accumulator_of(const probes::TensorCoreInstruction& instruction) {
  return {.bits = instruction.accumulator == probes::AccumulatorFormat::binary32 ? 32 : 16};
}

Example example_of(const probes::TensorCoreInstruction& instruction, const probes::InputFamily& family,
                   const probes::DotCounterexample& found) {
  const NumberType accumulator = accumulator_of(instruction);
  Example example{.kind = "value", .bits = {}, .values = {}};
  const auto put = [&](std::size_t cell, NumberType type, std::uint32_t code) {
    const auto append = [](std::string& texts, const std::string& text) {
      if (!texts.empty()) texts += ' ';
      texts += text;
    };
    append(example.bits[cell], bits_text(type, code));
    append(example.values[cell], value_text(type, code));
  };
  const probes::DotProduct& product = found.product;
  for (int k = product.first; k < product.first + product.count; ++k) {
    put(0, half_number, product.a[k]);
    put(1, half_number, product.b[k]);
  }
  put(2, accumulator, product.c);
  put(3, accumulator, found.found);
  put(4, accumulator, found.expected);
  if (family.family == probes::DotFamily::open_questions) {
    const auto question = std::ranges::find(probes::open_questions(), instruction.accumulator,
                                            &probes::OpenQuestion::accumulator);
    example.kind =
        fmt::format("{}: {}", question->name,
                    found.found == question->mma_sim_answer ? "MMA-Sim's answer" : "a third answer");
  }
  if (example.values[3] == "nan" && example.values[4] == "nan") example.kind = "NaN";
  if (!family.needs_model()) example.kind += fmt::format(", variant {}", found.variant);
  return example;
}

RowAnswer row_answer(const probes::TensorCoreInstruction& instruction, const probes::InputFamily& family,
                     const probes::TensorCoreResult& result) {
  RowAnswer row{.result = {.digest = result.digest,
                           .mismatches = result.mismatches,
                           .documented = 0,
                           .other_nans = result.nan_mismatches,
                           .misrounded = 0},
                .examples = {}};
  for (const probes::DotCounterexample& found : result.counterexamples)
    row.examples.push_back(example_of(instruction, family, found));
  return row;
}

DeviceAnswer answer_of(const probes::TensorCoreInstruction& instruction, const probes::InputFamily& family,
                       std::uint32_t shard) {
  const fp16::TensorCore& core = cuda::tensor_core_of(cuda::device().compute_capability);
  const probes::DotRange all = probes::shard_range(instruction, family, shard);
  const probes::TensorCoreResult result = probes::run(instruction, family, all, core);
  RowAnswer row = row_answer(instruction, family, result);
  prepend_value_examples(row, {.first = all.first, .count = all.count}, [&](probes::Range part) {
    const probes::DotRange numbers{.first = part.first, .count = part.count};
    return row_answer(instruction, family, probes::run(instruction, family, numbers, core));
  });
  return {.time_s = 1e-3 * result.milliseconds, .rows = {std::move(row)}};
}

/// Whether the row stands for all inputs that there are; of one product only where its accumulator has 16 bits.
bool is_enumerated(const probes::TensorCoreInstruction& instruction, const probes::InputFamily& family) {
  const bool all_triples = instruction.accumulator == probes::AccumulatorFormat::binary16;
  return family.is_enumerated() && (family.family != probes::DotFamily::one_product || all_triples);
}

/// Before all functions, but for wgmma (sweep.cpp says why).
bool is_asked_first(const probes::TensorCoreInstruction& instruction, const probes::InputFamily& family) {
  constexpr int warp = 32;
  return family.family == probes::DotFamily::open_questions && instruction.threads == warp;
}

Driver driver_of(const probes::TensorCoreInstruction& instruction, const probes::InputFamily& family) {
  const std::string name = tensor_core_operation(instruction, family);
  const Operation& operation = *std::ranges::find(operations(), name, &Operation::name);
  const Domain domain{.name = family.name,
                      .meaning = family.what,
                      .is_complete = is_enumerated(instruction, family),
                      .operand_count = 3,
                      .shard_count = family.shards(instruction),
                      .shard_size = family.shard_inputs(),
                      .inputs = family.inputs(instruction),
                      .at = nullptr,
                      .boundary_shards = [] { return std::vector<std::uint32_t>{0}; }};
  return {.functions = {},
          .rows = {row_id(operation, Subject::gpu)},
          .domain = domain,
          .cost = is_asked_first(instruction, family) ? 1u : 16u,
          .run = [&](std::uint32_t shard) { return answer_of(instruction, family, shard); },
          .obstacle = [&] { return probes::unavailable_reason(instruction); }};
}

}  // namespace

void append_tensor_core_drivers(std::vector<Driver>& drivers) {
  for (const probes::TensorCoreInstruction& instruction : probes::tensor_core_instructions()) {
    for (const probes::InputFamily& family : probes::input_families())
      drivers.push_back(driver_of(instruction, family));
  }
}

}  // namespace experiments::validate_gpu
