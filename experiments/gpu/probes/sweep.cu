#include <algorithm>
#include <array>
#include <stdexcept>

#include "experiments/gpu/probes/sweep.h"
#include "experiments/gpu/probes/traversal.cuh"
#include "fp16/cuda/runtime.cuh"

namespace experiments::probes {

namespace {

std::vector<SweepKernels> all_kernels() {
  std::vector<SweepKernels> all;
  for (const auto list : {arithmetic_kernels, fma_kernels, comparison_kernels, conversion_kernels,
                          integral_kernels, operator_kernels, move_kernels, atomic_kernels}) {
    const std::vector<SweepKernels> kernels = list();
    all.insert(all.end(), kernels.begin(), kernels.end());
  }
  return all;
}

const SweepKernels& kernels_of(std::string_view function) {
  static const std::vector<SweepKernels> all = all_kernels();
  const auto found = std::ranges::find(all, function, &SweepKernels::function);
  if (found == all.end())
    throw std::runtime_error("no sweep of '" + std::string(function) + "' was compiled");
  return *found;
}

void prepare(const SweepKernels& kernels) {
  if (kernels.prepare != nullptr)
    cuda::launch(kernels.prepare, 65536 / threads_per_block, threads_per_block, {});
}

static_assert(most_answers <= std::size_t{most_blocks} * threads_per_block);

void fill_in(std::vector<Counterexample>& calls, const void* explain, std::vector<void*> arguments = {}) {
  if (calls.empty()) return;
  cuda::DeviceArray<Counterexample> on_device{std::span<const Counterexample>(calls)};
  Counterexample* first = on_device.data();
  std::size_t count = calls.size();
  arguments.insert(arguments.end(), {&first, &count});
  cuda::launch(explain, blocks_for(count), threads_per_block, std::move(arguments));
  on_device.copy_to(calls);
}

}  // namespace

SweepResult result_of(const Report& report, const void* explain, std::vector<void*> arguments) {
  SweepResult result{.mismatches = report.mismatches,
                     .nan_mismatches = report.nan_mismatches,
                     .counterexamples = {},
                     .digest = report.digest};
  std::vector<Counterexample>& calls = result.counterexamples;
  for (const unsigned long long index : report.first_indices) {
    if (index != Report::none) calls.push_back({.index = index});
  }
  fill_in(calls, explain, std::move(arguments));
  return result;
}

SweepResult run(const Sweep& sweep, std::uint32_t shard, Range range) {
  const std::string name = "sweep of " + std::string(sweep.function);
  const std::uint64_t inputs = sweep.inputs_of_shard();
  if (shard >= sweep.shards())
    throw std::runtime_error(name + ": shard " + std::to_string(shard) + " of " +
                             std::to_string(sweep.shards()));
  if (range.count == 0 || range.first >= inputs || range.count > inputs - range.first)
    throw std::runtime_error(name + ": " + std::to_string(range.count) + " inputs from " +
                             std::to_string(range.first) + " on; a shard has " + std::to_string(inputs));
  const SweepKernels& kernels = kernels_of(sweep.function);
  prepare(kernels);
  range.first += std::uint64_t{shard} << 32;
  const Report empty;
  cuda::DeviceArray<Report> on_device{std::span<const Report>(&empty, 1)};
  Report* argument = on_device.data();
  cuda::load(kernels.compare);

  cuda::Stopwatch stopwatch;
  cuda::launch(kernels.compare, blocks_for(range.count), threads_per_block, {&range, &argument});
  const double milliseconds = stopwatch.milliseconds();
  SweepResult result = result_of(on_device.to_host()[0], kernels.explain);
  result.inputs = range.count;
  result.milliseconds = milliseconds;
  return result;
}

std::vector<std::uint64_t> answers_at(const Sweep& sweep, std::span<const std::uint64_t> inputs) {
  const auto refuse = [&](const std::string& text) {
    throw std::runtime_error("sweep of " + std::string(sweep.function) + ": " + text);
  };
  if (inputs.size() > most_answers)
    refuse(std::to_string(inputs.size()) + " inputs at once; allowed: " + std::to_string(most_answers));
  std::vector<Counterexample> calls;
  for (const std::uint64_t input : inputs) {
    if (input >= sweep.inputs())
      refuse("input " + std::to_string(input) + " of " + std::to_string(sweep.inputs()));
    calls.push_back({.index = input});
  }
  const SweepKernels& kernels = kernels_of(sweep.function);
  prepare(kernels);
  fill_in(calls, kernels.explain);
  std::vector<std::uint64_t> answers;
  for (const Counterexample& call : calls) answers.push_back(call.found[0]);
  return answers;
}

}  // namespace experiments::probes
