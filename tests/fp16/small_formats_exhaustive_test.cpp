/// What small_formats_test.cpp does with two choices of the options, with all 48; and all fma triples of the
/// 8-bit formats.

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "tests/fp16/operations.h"
#include "tests/oracle/sweep.h"

namespace fp16 {
namespace {

using oracle::Options;

/// Shards of each format; those of the narrower ones are partly empty.
constexpr std::uint64_t first_operands = 256;

std::uint64_t small_format_count() {
  std::uint64_t count = 0;
  for_each_small_format([&]<const Format & F>() { ++count; });
  return count;
}

/// A shard is one format with one first operand `a`; check.template operator()<F>(comparison, a) does it.
template <typename Check>
oracle::Checked check_shard(std::uint64_t shard, Check check) {
  oracle::Checked checked;
  std::uint64_t format = 0;
  for_each_small_format([&]<const Format & F>() {
    const std::uint64_t a = shard % first_operands;
    if (format++ != shard / first_operands || a >> F.width() != 0) return;
    oracle::Comparison comparison(std::string(name_of(F)));
    check.template operator()<F>(comparison, a);
    checked = {.inputs = comparison.count(), .difference = comparison.first_difference()};
  });
  return checked;
}

TEST_CASE("operations on all pairs of the formats of at most 8 bits with all options") {
  std::uint64_t comparisons = 0;
  for_each_small_format([&]<const Format & F>() {
    comparisons += (std::uint64_t{1} << 2 * F.width()) * Options::count * 4 * oracle::rounding_names.size();
  });
  const auto check_pairs = []<const Format & F>(oracle::Comparison& comparison, std::uint64_t a) {
    for (std::uint64_t b = 0; b >> F.width() == 0; ++b) {
      for (int options = 0; options < Options::count; ++options)
        compare_pair<F>(comparison, a, b, Options(options));
    }
  };
  oracle::check_sweep({.name = "small_format_pairs",
                       .shards = small_format_count() * first_operands,
                       .inputs = comparisons,
                       .run = [&](std::uint64_t shard) { return check_shard(shard, check_pairs); }});
}

TEST_CASE("fma of all triples of the 8-bit formats") {
  std::uint64_t comparisons = 0;
  for_each_small_format([&]<const Format & F>() {
    if (F.width() == 8) comparisons += (std::uint64_t{1} << 24) * oracle::rounding_names.size();
  });
  const auto check_triples = []<const Format & F>(oracle::Comparison& comparison, std::uint64_t a) {
    if constexpr (F.width() == 8) {
      for (std::uint64_t bc = 0; bc < 65536; ++bc)
        compare_triple<F>(comparison, a, bc >> 8, bc & 255, Options::of_case(a << 16 | bc));
    }
  };
  oracle::check_sweep({.name = "small_format_fma",
                       .shards = small_format_count() * first_operands,
                       .inputs = comparisons,
                       .run = [&](std::uint64_t shard) { return check_shard(shard, check_triples); }});
}

}  // namespace
}  // namespace fp16
