#pragma once
/// What a block format makes of tensors: where its scales lie, what is clipped or falls into the dead zone, and the blocks
/// that lose most.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/frame/tensor_files/tensor_set.h"
#include "fp16/block.h"
#include "tools/halflab/quantize/findings.h"

namespace halflab::hist {

/// A tensor, or all together.
struct BlockedTensor {
  quantize::TensorFound found;
  std::uint64_t blocks = 0;
  std::array<std::uint64_t, 256> scales = {};  ///< blocks by the code of their scale

  BlockedTensor& operator+=(const BlockedTensor& other);
};

/// A block whose values are other than all zero.
struct WorstBlock {
  std::string tensor;
  std::string first_index;  ///< of its first value
  double relative_error = 0;
  double largest = 0;  ///< magnitude
};

struct BlockFindings {
  quantize::Recipe recipe;
  std::vector<BlockedTensor> tensors;
  BlockedTensor total;
  std::vector<WorstBlock> worst;  ///< of all tensors, the worst first
};

/// Each tensor in memory, one after the other; blocks lie along the last dimension, their scales follow the format's own
/// rule, nearest-even.
BlockFindings measure_blocks(const experiments::tensor_files::TensorSet& set, const fp16::BlockFormat& format,
                             experiments::Run& run);

experiments::Outputs block_outputs();
void report(experiments::Run& run, const BlockFindings& found);

}  // namespace halflab::hist
