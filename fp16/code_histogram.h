#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fp16 {

/// Counts how often each of the 65,536 codes of 16 bits occurs: of binary16, of bfloat16 or of anything else, for
/// here the codes have no meaning. ExponentHistogram::add gives them one. Needs halflab::fp16_bulk.
///
/// An array may be added in parts of any size, and parts to histograms of several threads, whose sum does not
/// depend on how it was split. A histogram takes 768 KiB; to make one, to copy it or to add it to another takes as
/// long as to count some 100,000 codes.
///
/// How it is known: against one increment a code, over every code, length and alignment, runs and mixtures of codes,
/// on every level of x86-64 that is compiled for, and beyond 2^32 codes.
class CodeHistogram {
 public:
  static constexpr std::size_t code_count = 65536;

  CodeHistogram();

  void add(std::span<const std::uint16_t> codes);
  CodeHistogram& operator+=(const CodeHistogram& other);

  std::uint64_t count(std::uint16_t code) const;
  std::uint64_t total() const { return total_; }

  friend bool operator==(const CodeHistogram& a, const CodeHistogram& b);

 private:
  void settle();

  std::vector<std::uint32_t> recent_;  ///< small enough to stay near the processor; in an order of their own
  std::uint32_t recent_total_ = 0;
  std::vector<std::uint64_t> settled_;
  std::uint64_t total_ = 0;
};

}  // namespace fp16
