#pragma once
/// Tests of many cases in parts, for processors that are slow or emulated.

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace test {

/// Whether a case, from 0, is to be run: HALFLAB_TEST_SHARD=2/8 takes every eighth from the second on, as `training --shard`
/// counts; without it all are.
inline bool is_in_shard(std::size_t index) {
  const char* const shard = std::getenv("HALFLAB_TEST_SHARD");
  if (shard == nullptr) return true;
  std::size_t own = 0, all = 0;
  if (std::sscanf(shard, "%zu/%zu", &own, &all) != 2 || own < 1 || own > all)
    throw std::invalid_argument("HALFLAB_TEST_SHARD: must be as 2/8");
  return index % all == own - 1;
}

}  // namespace test
