#pragma once
/// How rows on a GPU are run: shards of inputs that the device tries and judges itself.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "experiments/gpu/probes/sweep.h"
#include "experiments/validation/domains.h"
#include "experiments/validation/numbers.h"
#include "experiments/validation/shards.h"

namespace experiments::validate_gpu {

using namespace validation;

struct RowAnswer {
  ShardResult result;
  std::vector<Example> examples;  ///< some of what differs, the first ones
};

struct DeviceAnswer {
  double time_s = 0;  ///< on the device
  std::vector<RowAnswer> rows;
};

/// Rows that the device answers together, such as those of the fused multiply-adds.
struct Driver {
  std::vector<std::string> functions;  ///< of cuda_fp16.h; none for tensor cores
  std::vector<std::string> rows;       ///< Row::id() of each function's
  Domain domain;                       ///< of each of them
  std::uint64_t cost = 1;              ///< of an input, in fused multiply-adds: that many fewer are sampled
  /// One answer for each of `rows`. Throws std::runtime_error for what the device or its driver refuses.
  std::function<DeviceAnswer(std::uint32_t shard)> run;
  /// What a row answers, of packed functions the first lane. None where the device gives no single answers.
  std::function<std::vector<std::uint64_t>(std::size_t row, const std::vector<Operands>& operands)> answers =
      {};
  /// Why the present device cannot, as one line; empty if it can. Only asked where there is a device.
  std::function<std::string()> obstacle = [] { return std::string(); };
};

/// The drivers of all kernels, in the order of operations(); the same in every build, also without CUDA.
const std::vector<Driver>& device_drivers();

/// Where all examples are NaNs of other bits though there are other values, too: puts examples of these before them.
/// Parts of `range`, the whole shard, are asked for until there is one.
void prepend_value_examples(RowAnswer& row, probes::Range range,
                            const std::function<RowAnswer(probes::Range part)>& ask);

}  // namespace experiments::validate_gpu
