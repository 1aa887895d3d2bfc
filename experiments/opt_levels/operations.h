#pragma once
/// In which formats a recipe runs a network's operations, read off the tensors that its tape holds.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/opt_levels/recipes.h"
#include "experiments/training/training_setup.h"
#include "fp16/format.h"

namespace experiments::opt_levels {

/// The values of one operation that have the same formats.
struct OperationUse {
  std::string operation;        ///< "parameter" and "input" too, which none computed
  fp16::Format format;          ///< of its results
  std::string operands;         ///< of linear and conv2d, what is multiplied: "mxfp4 rceil"
  int operand_bits = 0;         ///< of an element that is multiplied, or else of the results
  std::string gradient_format;  ///< of the gradient of its results; empty where there is none
  std::uint64_t calls = 0;
  std::uint64_t values = 0;  ///< elements of its results
  std::uint64_t bytes = 0;   ///< of these
};

/// One forward and backward pass over the first batch of the seed, from the initial weights. In the order of
/// computation; of an operation in several formats, or with gradients in several, a row each.
std::vector<OperationUse> operation_uses(const TrainingSetup& setup, const Recipe& recipe,
                                         std::uint64_t seed);

}  // namespace experiments::opt_levels
