#pragma once
/// An operation on half, by its scalar function and by its array function on every vector path, held to the
/// fast oracle in all six directions, a block of operands at a time.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "fp16/bulk.h"
#include "tests/oracle/agreement.h"
#include "tests/oracle/fast_half.h"
#include "tests/oracle/sweep.h"

namespace fp16 {

/// The three take operands, then what their namesakes of the library take. `expected` gives PackedOutcomes.
template <typename Expected, typename Scalar, typename Array>
struct SweptOperation {
  std::string_view name;
  Expected expected;
  Scalar scalar;
  Array array;
};
template <typename Expected, typename Scalar, typename Array>
SweptOperation(std::string_view, Expected, Scalar, Array) -> SweptOperation<Expected, Scalar, Array>;

inline oracle::fast::Packed pack(const Result<binary16>& result) {
  const Flags& flags = result.flags;
  return oracle::fast::pack(result.bits, flags.inexact, flags.underflow, flags.overflow, flags.divide_by_zero,
                            flags.invalid);
}

template <typename Operand, std::size_t operand_count>
struct OperandBlock {
  static constexpr std::size_t size = 2048;
  std::array<std::array<Operand, size>, operand_count> operands;

  /// function(a[i], b[i] ..., more...)
  template <typename Function, typename... More>
  auto call(std::size_t i, Function& function, const More&... more) const {
    return [&]<std::size_t... k>(std::index_sequence<k...>) {
      return function(operands[k][i]..., more...);
    }
    (std::make_index_sequence<operand_count>());
  }

  /// function(spans of a, b ..., more...)
  template <typename Function, typename... More>
  void call_with_spans(Function& function, const More&... more) const {
    [&]<std::size_t... k>(std::index_sequence<k...>) {
      function(std::span<const Operand>(operands[k])..., more...);
    }
    (std::make_index_sequence<operand_count>());
  }

  std::string text(std::size_t i) const {
    std::string text;
    for (const auto& column : operands) {
      if constexpr (sizeof(Operand) == 4) {
        text += ' ' + oracle::text(std::bit_cast<std::uint32_t>(column[i]));
      } else {
        text += ' ' + oracle::text(column[i]);
      }
    }
    return text;
  }
};

/// Compiled once for each direction, which is a constant then.
template <std::size_t direction, typename Scalar, typename Block>
[[gnu::noinline, gnu::flatten]] void compute_scalar(Scalar scalar, const Block& block,
                                                    std::array<oracle::fast::Packed, Block::size>& got) {
  for (std::size_t i = 0; i < Block::size; ++i)
    got[i] = pack(block.call(i, scalar, Attributes{.rounding = oracle::roundings[direction]}));
}

/// A block to be filled with operands, and everything to be compared on it.
template <typename Operation, typename Block>
class BlockComparison {
 public:
  explicit BlockComparison(const Operation& operation) : operation_(operation) {}

  Block& block() { return block_; }
  /// What the oracle gave in the last comparison.
  const std::array<std::uint16_t, Block::size>& expected_bits(std::size_t direction) const {
    return expected_bits_[direction];
  }

  /// Operands, got and expected; empty: there is none.
  std::string first_difference() {
    for (std::size_t i = 0; i < Block::size; ++i) {
      const oracle::fast::PackedOutcomes outcomes = block_.call(i, operation_.expected);
      for (std::size_t k = 0; k < oracle::direction_count; ++k) {
        expected_[k][i] = outcomes[k];
        expected_bits_[k][i] = static_cast<std::uint16_t>(outcomes[k]);
      }
    }
    std::string difference;
    [&]<std::size_t... k>(std::index_sequence<k...>) {
      static_cast<void>(((difference = scalar_difference<k>()).empty() && ...));
    }
    (std::make_index_sequence<oracle::direction_count>());
    for (const VectorPath path : available_vector_paths()) {
      for (std::size_t k = 0; k < oracle::direction_count && difference.empty(); ++k)
        difference = array_difference(path, k);
    }
    return difference;
  }

 private:
  using Column = std::array<oracle::fast::Packed, Block::size>;
  using Bits = std::array<std::uint16_t, Block::size>;

  template <std::size_t direction>
  std::string scalar_difference() {
    compute_scalar<direction>(operation_.scalar, block_, got_);
    const auto different = std::ranges::mismatch(got_, expected_[direction]).in1 - got_.begin();
    if (different == Block::size) return "";
    return describe("scalar", direction, different) + oracle::text(oracle::fast::unpack(got_[different])) +
           ", expected " + oracle::text(oracle::fast::unpack(expected_[direction][different]));
  }

  std::string array_difference(VectorPath path, std::size_t direction) {
    block_.call_with_spans(operation_.array, std::span(got_bits_),
                           Attributes{.rounding = oracle::roundings[direction]}, ArrayOptions{.path = path});
    if (got_bits_ == expected_bits_[direction]) return "";
    const auto different =
        std::ranges::mismatch(got_bits_, expected_bits_[direction]).in1 - got_bits_.begin();
    return describe(name_of(path), direction, different) + oracle::text(got_bits_[different]) +
           ", expected " + oracle::text(expected_bits_[direction][different]);
  }

  std::string describe(std::string_view what, std::size_t direction, std::ptrdiff_t i) const {
    return std::string(operation_.name) + ' ' + std::string(what) + ' ' +
           std::string(oracle::direction_names[direction]) + block_.text(i) + ": got ";
  }

  Operation operation_;
  Block block_;
  std::array<Column, oracle::direction_count> expected_;
  std::array<Bits, oracle::direction_count> expected_bits_;
  Column got_;
  Bits got_bits_;
};

}  // namespace fp16
