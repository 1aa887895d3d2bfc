#pragma once
/// Sweeps of the functions of cuda_fp16.h against the operations of ops.h. The software operation runs on the
/// device beside the native function and is compared there.
///
/// Without CUDA, and with errors, everything here is as fp16/cuda/device.h says.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fp16/operations.h"

namespace experiments::probes {

using fp16::OperandCodes;
using fp16::Operation;

/// How many numbers a call works on and how it answers.
enum class Pipe {
  scalar,  ///< one number
  packed,  ///< two, in a half2 (or float2); a predicate's answers are 1.0 and 0.0
  mask,    ///< two; a predicate's answers are 0xFFFF and 0
  both     ///< two; one answer, whether a predicate holds for both
};

std::string_view name_of(Pipe pipe);

/// A function and all inputs that it is tried with, numbered 0 ... 2^index_bits - 1.
///
/// Operands of together at most 48 bits are exhausted: the number is the operands' codes side by side, the
/// first one's in the highest bits. A double takes the neighbourhood of every number of binary16 and of every
/// midpoint between two, and random bits after those; a 64-bit integer all of -2^19 ... 2^19 - 1 (0 ... 2^20 - 1
/// without a sign) and random ones after those. Of two packed numbers the first has these operands, the second
/// those of another input, by a permutation of all: so both see every input.
struct Sweep {
  std::string_view function;  ///< as in cuda_fp16.h
  Pipe pipe;
  const Operation* operation;
  int index_bits;

  bool exhausts_operands() const;
  std::uint64_t inputs() const { return std::uint64_t{1} << index_bits; }
  /// A shard is up to 2^32 consecutive inputs, so that an fma's is all b and c of one a.
  std::uint32_t shards() const { return index_bits > 32 ? 1u << (index_bits - 32) : 1u; }
  std::uint64_t inputs_of_shard() const { return inputs() / shards(); }
};

/// Consecutive inputs, by their numbers in a shard.
struct Range {
  std::uint64_t first;
  std::uint64_t count;
};

/// Every sweep, by function.
const std::vector<Sweep>& sweeps();

/// A call whose answer differs, in codes; of a scalar call or one answer for both the second half is 0.
struct Counterexample {
  std::uint64_t index;
  std::array<OperandCodes, 2> operands;
  std::array<std::uint64_t, 2> expected;
  std::array<std::uint64_t, 2> found;
};

struct SweepResult {
  std::uint64_t inputs = 0;
  std::uint64_t mismatches = 0;      ///< calls with an answer of another value
  std::uint64_t nan_mismatches = 0;  ///< the other calls with an answer that is a NaN of other bits
  /// The calls of either kind with the lowest numbers, at most `max_counterexamples`, ascending.
  std::vector<Counterexample> counterexamples;
  /// Digest of the device's answers and the inputs' numbers. A sum, so that it depends on no order, and the digests of
  /// parts of a shard add up to the shard's: equal digests on two machines mean equal answers.
  std::uint64_t digest = 0;
  double milliseconds = 0;  ///< on the device
};

inline constexpr int max_counterexamples = 8;

/// The shard, or a part of it, which may be small. Throws std::runtime_error without a device, if it lacks the
/// function's instruction, or if the sweep has no such shard or the shard no such inputs.
SweepResult run(const Sweep& sweep, std::uint32_t shard);
SweepResult run(const Sweep& sweep, std::uint32_t shard, Range range);

/// What the device answers to the inputs with these numbers, 0 ... sweep.inputs() - 1, as codes; of two numbers the
/// first. Throws std::runtime_error as `run`, and for more than `most_answers`.
std::vector<std::uint64_t> answers_at(const Sweep& sweep, std::span<const std::uint64_t> inputs);
inline constexpr std::size_t most_answers = std::size_t{1} << 20;

/// A function of one half whose answers are read out instead of compared.
struct TabulatedFunction {
  std::string_view function;
  Pipe pipe;
};

const std::vector<TabulatedFunction>& tabulated_functions();

/// The codes that the device answers, by the code of the operand: one table for a scalar function, two for the
/// first and second number of a packed one.
std::vector<std::vector<std::uint16_t>> tabulate(const TabulatedFunction& function);

}  // namespace experiments::probes
