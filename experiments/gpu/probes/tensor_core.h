#pragma once
/// Tensor-core instructions held on the device to the model of mma.h, and to themselves. Every dot product of a
/// family of inputs (tensor_core_inputs.h) goes through the instruction, and each result is compared on the device
/// with `mma_dot` (mma.h), or, by families that need no model, with another result of the instruction.
///
/// A number is the same dot product for all instructions of one depth and accumulator, whatever the shape of
/// their tiles; so their digests of the same numbers can be compared, and are equal where the model is right.
///
/// Errors: std::runtime_error as in fp16/cuda/device.h, and where the device or the build lacks the instruction;
/// std::invalid_argument for numbers or shards that a family does not have.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fp16/mma.h"

namespace experiments::probes {

using fp16::TensorCore;

enum class AccumulatorFormat { binary32, binary16 };

std::string_view name_of(AccumulatorFormat format);

/// d = a * b + c with a rows x depth and b depth x columns in binary16, by one instruction (for wmma, one call)
/// of `threads` threads.
struct TensorCoreInstruction {
  std::string_view name;  ///< such as mma_m16n8k16
  AccumulatorFormat accumulator;
  int rows;
  int columns;
  int depth;
  int threads;
  std::string_view targets;  ///< that have it, in words
};

/// Every instruction with each accumulator. The same list without CUDA.
const std::vector<TensorCoreInstruction>& tensor_core_instructions();

/// Why the device cannot run `instruction`, as one line; empty if it can.
std::string unavailable_reason(const TensorCoreInstruction& instruction);

/// c + a[0] * b[0] + ... + a[depth-1] * b[depth-1], as codes. All a and b outside of [first, first + count) are +0.
struct DotProduct {
  static constexpr int max_depth = 16;

  std::uint16_t a[max_depth] = {};
  std::uint16_t b[max_depth] = {};
  std::uint32_t c = 0;
  int first = 0;
  int count = max_depth;
};

enum class DotFamily {
  // Compared with the model
  open_questions,  ///< two answers are published, and no recorded step of most architectures decides
  random,          ///< a mixture of distributions in fixed proportions
  structure,       ///< exponent gaps, signs, edge significands, positions and carries, enumerated
  specials,        ///< every NaN and infinity, in every slot and in c
  one_product,     ///< c + a * b: with a binary16 accumulator all 2^48, with binary32 a sample of c
  // Compared with another result of the instruction, which has to be the same or what is said
  permutation,   ///< another order of the products within a step of the model
  negation,      ///< a and c negated: the result negated, but +0 for a sum of zero
  scaling,       ///< a and c times a power of two, where no border is near: the result times it
  position,      ///< at every place of the tile, among other dot products
  zero_padding,  ///< products 0 * 0 replaced by zero times any finite number, in either order and sign
  repetition     ///< the same once more
};

struct InputFamily {
  DotFamily family;
  std::string_view name;
  std::string_view what;

  bool needs_model() const { return family <= DotFamily::one_product; }
  /// Whether the numbers end; otherwise they are random, and any below 2^64 - 1 is one.
  bool is_enumerated() const {
    return family == DotFamily::open_questions || family == DotFamily::structure ||
           family == DotFamily::specials || family == DotFamily::one_product;
  }
  /// The numbers 0 ... inputs - 1 are all of an enumerated family, and what a default run takes of another.
  std::uint64_t inputs(const TensorCoreInstruction& instruction) const;
  /// A shard is up to `shard_inputs()` consecutive numbers.
  std::uint64_t shard_inputs() const;
  std::uint32_t shards(const TensorCoreInstruction& instruction) const;
};

const std::vector<InputFamily>& input_families();

/// The dot product of a number, as the device makes it too; of families without model the one that the others
/// are derived from.
DotProduct dot_product(const TensorCoreInstruction& instruction, DotFamily family, std::uint64_t number);

/// The number 0 of DotFamily::open_questions with one accumulator: a step with two answers, in codes of the
/// accumulator: that of `mma_dot`, which an H200 gives, and that of IEEE 754 or of MMA-Sim (Xie et al.,
/// arXiv:2511.10909).
struct OpenQuestion {
  AccumulatorFormat accumulator;
  std::string_view name;
  std::uint32_t model_answer;
  std::string_view other;  ///< whose the other answer is
  std::uint32_t other_answer;
};

const std::vector<OpenQuestion>& open_questions();

/// What the model says: the code of the accumulator's format.
std::uint32_t model_result(const TensorCore& core, const TensorCoreInstruction& instruction,
                           const DotProduct& product);

/// A result that is not what it has to be, in codes of the accumulator's format.
struct DotCounterexample {
  std::uint64_t number;
  /// Which of the derived dot products, in families without model; those are compared with the result of
  /// `product` itself.
  int variant;
  DotProduct product;
  std::uint32_t expected;
  std::uint32_t found;
};

struct TensorCoreResult {
  std::uint64_t inputs = 0;
  std::uint64_t mismatches = 0;      ///< inputs with a result of another value, or sign of zero
  std::uint64_t nan_mismatches = 0;  ///< the other inputs with a NaN of other bits
  /// The lowest numbers of either kind, ascending, at most `max_counterexamples` (sweep.h); each is computed
  /// once more to be shown, so a result that comes and goes may be shown as right.
  std::vector<DotCounterexample> counterexamples;
  /// Digest of the numbers and the device's results, as in sweep.h: a sum, so that parts add up.
  std::uint64_t digest = 0;
  double milliseconds = 0;  ///< on the device
};

/// Numbers first ... first + count - 1 of a family.
struct DotRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// The numbers of a shard.
DotRange shard_range(const TensorCoreInstruction& instruction, const InputFamily& family,
                     std::uint32_t shard);

/// `core` says what is expected, and in families without model how long a step is.
TensorCoreResult run(const TensorCoreInstruction& instruction, const InputFamily& family,
                     const DotRange& numbers, const TensorCore& core);

}  // namespace experiments::probes
