#include <algorithm>
#include <span>
#include <stdexcept>

#include "experiments/gpu/probes/tensor_core.cuh"
#include "experiments/gpu/probes/tensor_core.h"
#include "fp16/cuda/runtime.cuh"

namespace experiments::probes {

namespace {

constexpr std::uint64_t most_tile_blocks = 16384;

std::vector<TensorCoreKernels> all_kernels() {
  std::vector<TensorCoreKernels> all;
#define FP16_LIST_KERNELS(name, ...) name##_kernels,
  for (const auto list : {FP16_TENSOR_CORE_INSTRUCTIONS(FP16_LIST_KERNELS)}) {
#undef FP16_LIST_KERNELS
    const std::vector<TensorCoreKernels> kernels = list();
    all.insert(all.end(), kernels.begin(), kernels.end());
  }
  return all;
}

const TensorCoreKernels& kernels_of(const TensorCoreInstruction& instruction) {
  static const std::vector<TensorCoreKernels> all = all_kernels();
  const auto found = std::ranges::find_if(all, [&](const TensorCoreKernels& kernels) {
    return kernels.name == instruction.name && kernels.accumulator == instruction.accumulator;
  });
  if (found == all.end())
    throw std::invalid_argument("no tensor-core instruction '" + std::string(instruction.name) + "'");
  return *found;
}

/// A family's device code, and how many numbers a block takes at once.
struct Traversal {
  const void* kernel;
  int numbers_per_block;
};

Traversal traversal(const TensorCoreInstruction& instruction, DotFamily family) {
  const TensorCoreKernels& kernels = kernels_of(instruction);
  if (family == DotFamily::one_product)
    return {kernels.compare_products, instruction.rows * instruction.columns};
  if (family <= DotFamily::specials) return {kernels.compare_dots, instruction.threads};
  return {kernels.compare_variants, instruction.threads};
}

void launch_sweep(const TensorCoreInstruction& instruction, DotSweep sweep) {
  const auto [kernel, numbers_per_block] = traversal(instruction, sweep.family);
  const std::uint64_t first_group = sweep.numbers.first / numbers_per_block;
  const std::uint64_t last_group = (sweep.numbers.first + sweep.numbers.count - 1) / numbers_per_block;
  const auto blocks = static_cast<unsigned>(std::min(most_tile_blocks, last_group - first_group + 1));
  cuda::launch(kernel, blocks, static_cast<unsigned>(instruction.threads), {&sweep});
}

DotCounterexample explain(const TensorCoreInstruction& instruction, DotSweep sweep, std::uint64_t number) {
  const Report report;
  cuda::DeviceArray<Report> ignored{std::span<const Report>(&report, 1)};
  cuda::DeviceArray<Observation> observation(1);
  sweep.numbers = {.first = number, .count = 1};
  sweep.report = ignored.data();
  sweep.observations = observation.data();
  launch_sweep(instruction, sweep);
  const Observation seen = observation.to_host().front();
  return {.number = number,
          .variant = seen.variant,
          .product = dot_product(instruction, sweep.family, number),
          .expected = seen.expected,
          .found = seen.found};
}

}  // namespace

std::string unavailable_reason(const TensorCoreInstruction& instruction) {
  const TensorCoreKernels& kernels = kernels_of(instruction);
  try {
    kernels.require(kernels.compare_dots);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TensorCoreResult run(const TensorCoreInstruction& instruction, const InputFamily& family,
                     const DotRange& numbers, const TensorCore& core) {
  const TensorCoreKernels& kernels = kernels_of(instruction);
  kernels.require(traversal(instruction, family.family).kernel);
  const std::uint64_t inputs = family.is_enumerated() ? family.inputs(instruction) : Report::none;
  if (numbers.first > inputs || numbers.count > inputs - numbers.first)
    throw std::invalid_argument("'" + std::string(family.name) + "': numbers " +
                                std::to_string(numbers.first) + " and " + std::to_string(numbers.count) +
                                " more, there are " + std::to_string(inputs));
  TensorCoreResult result{.inputs = numbers.count};
  if (numbers.count == 0) return result;
  Report report;
  cuda::DeviceArray<Report> on_device{std::span<const Report>(&report, 1)};
  const DotSweep sweep{.family = family.family,
                       .shape = {.depth = instruction.depth, .accumulator = instruction.accumulator},
                       .numbers = numbers,
                       .core = core,
                       .report = on_device.data(),
                       .observations = nullptr};
  cuda::Stopwatch stopwatch;
  launch_sweep(instruction, sweep);
  result.milliseconds = stopwatch.milliseconds();
  on_device.copy_to({&report, 1});
  result.mismatches = report.mismatches;
  result.nan_mismatches = report.nan_mismatches;
  result.digest = report.digest;
  for (const unsigned long long number : report.first_indices) {
    if (number != Report::none) result.counterexamples.push_back(explain(instruction, sweep, number));
  }
  return result;
}

}  // namespace experiments::probes
