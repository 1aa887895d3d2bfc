/// What small_formats_test.cpp does with two choices of the options, with all 48; and all fma triples of the
/// 8-bit formats.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tests/fp16/operations.h"

namespace fp16 {
namespace {

using oracle::Options;

/// Calls work(shard) for 0 .. shards-1, each in its own thread.
template <typename Work>
void in_threads(unsigned shards, Work work) {
  std::vector<std::jthread> threads;
  for (unsigned shard = 0; shard < shards; ++shard) threads.emplace_back(work, shard);
}

const unsigned thread_count = std::max(1u, std::thread::hardware_concurrency());

TEST_CASE("operations on all pairs of the formats of at most 8 bits with all options") {
  for_each_small_format([]<const Format & F>() {
    constexpr std::uint64_t codes = std::uint64_t{1} << F.width();
    std::vector<oracle::Comparison> comparisons(thread_count,
                                                oracle::Comparison("pairs of " + std::string(name_of(F))));
    in_threads(thread_count, [&](unsigned shard) {
      for (std::uint64_t a = shard; a < codes; a += thread_count) {
        for (std::uint64_t b = 0; b < codes; ++b) {
          for (int options = 0; options < Options::count; ++options)
            compare_pair<F>(comparisons[shard], a, b, Options(options));
        }
      }
    });
    for (unsigned shard = 0; shard < thread_count; ++shard) {
      const std::uint64_t share = (codes - shard + thread_count - 1) / thread_count;
      comparisons[shard].finish(share * codes * Options::count * 4 * 11);
    }
  });
}

TEST_CASE("fma of all triples of the 8-bit formats") {
  for_each_small_format([]<const Format & F>() {
    if constexpr (F.width() == 8) {
      std::vector<oracle::Comparison> comparisons(thread_count,
                                                  oracle::Comparison("fma in " + std::string(name_of(F))));
      in_threads(thread_count, [&](unsigned shard) {
        for (std::uint64_t a = shard; a < 256; a += thread_count) {
          for (std::uint64_t bc = 0; bc < 65536; ++bc) {
            const Options options = Options::of_case(a << 16 | bc);
            compare_triple<F>(comparisons[shard], a, bc >> 8, bc & 255, options);
          }
        }
      });
      for (unsigned shard = 0; shard < thread_count; ++shard)
        comparisons[shard].finish((256 - shard + thread_count - 1) / thread_count * 65536 * 11);
    }
  });
}

}  // namespace
}  // namespace fp16
