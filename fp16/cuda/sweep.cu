#include <algorithm>
#include <array>
#include <stdexcept>

#include "fp16/cuda/runtime.cuh"
#include "fp16/cuda/sweep.h"
#include "fp16/cuda/traversal.cuh"

namespace fp16::cuda {

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

cudaDeviceProp properties() {
  int current = 0;
  cudaDeviceProp result{};
  check(cudaGetDevice(&current), "cudaGetDevice");
  check(cudaGetDeviceProperties(&result, current), "cudaGetDeviceProperties");
  return result;
}

std::string as_text(const cudaUUID_t& uuid) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace

std::string unavailable_reason() {
  int driver = 0, count = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
    return "no CUDA device: no NVIDIA driver is installed";
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return std::string("no CUDA device: ") + cudaGetErrorString(error);
  }
  if (count == 0) return "no CUDA device: none was found";
  cudaFuncAttributes attributes{};
  const cudaError_t loaded = cudaFuncGetAttributes(&attributes, kernels_of("__hadd").compare);
  if (loaded == cudaSuccess) return "";
  cudaGetLastError();
  return "CUDA device " + device().name + ": " + cudaGetErrorString(loaded);
}

Device device() {
  const cudaDeviceProp found = properties();
  Device result{.name = found.name,
                .uuid = as_text(found.uuid),
                .driver = 0,
                .runtime = 0,
                .compute_capability = 10 * found.major + found.minor};
  check(cudaDriverGetVersion(&result.driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&result.runtime), "cudaRuntimeGetVersion");
  return result;
}

namespace {

void prepare(const SweepKernels& kernels) {
  if (kernels.prepare != nullptr) launch(kernels.prepare, 65536 / threads_per_block, threads_per_block, {});
}

static_assert(most_answers <= std::size_t{most_blocks} * threads_per_block);

void fill_in(std::vector<Counterexample>& calls, const void* explain, std::vector<void*> arguments = {}) {
  if (calls.empty()) return;
  DeviceArray<Counterexample> on_device{std::span<const Counterexample>(calls)};
  Counterexample* first = on_device.data();
  std::size_t count = calls.size();
  arguments.insert(arguments.end(), {&first, &count});
  launch(explain, blocks_for(count), threads_per_block, std::move(arguments));
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
  DeviceArray<Report> on_device{std::span<const Report>(&empty, 1)};
  Report* argument = on_device.data();
  load(kernels.compare);

  Stopwatch stopwatch;
  launch(kernels.compare, blocks_for(range.count), threads_per_block, {&range, &argument});
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

}  // namespace fp16::cuda
