#pragma once
/// Operands that a kernel should be tried with.

#include <cstdint>
#include <optional>

#include "tools/halflab/validate/functions.h"

namespace halflab::validate {

/// All operands of a function in one format where these are at most 2^32 and no number of them is asked for, else so many
/// (by default 2^20) that are boundary-weighted: zeros, subnormal numbers, powers of two, infinities, NaNs and their
/// neighbours, and numbers near each other and near the product; of a cast from a wide format also numbers of narrower ones
/// and the middles between these, where their rounding turns. Each is a function of its index (and the seed) alone.
class OperandList {
 public:
  OperandList(const Function& function, const fp16::Format& format, std::optional<std::int64_t> weighted,
              std::uint64_t seed);

  bool is_complete() const { return is_complete_; }
  std::uint64_t size() const { return size_; }
  Operands operator[](std::uint64_t index) const;
  /// The boundary-weighted operands of that index, also where the list has all.
  Operands weighted(std::uint64_t index) const;

 private:
  /// Near where rounding to a narrower format turns; `random` says which and where.
  std::uint64_t beside_narrower(std::uint64_t random) const;
  std::uint64_t weighted_code(std::uint64_t index, std::uint64_t operand, std::uint64_t near) const;

  fp16::Format format_;
  int arity_;
  bool is_complete_;
  std::uint64_t size_, seed_;
  Evaluate multiply_;
  Evaluate from_binary64_;  ///< of a cast from a format that is wider than binary16 alone
};

}  // namespace halflab::validate
