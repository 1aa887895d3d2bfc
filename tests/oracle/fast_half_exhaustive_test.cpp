#include <doctest/doctest.h>

#include "tests/oracle/fast_half_agreement.h"
#include "tests/oracle/sweep.h"

namespace oracle {
namespace {

TEST_CASE("the fast oracle agrees with exact rationals and with MPFR on 10,240,000 cases of each operation") {
  constexpr std::uint64_t shards = 1024;
  constexpr int cases = 10'000;
  check_sweep(
      {.name = "fast_oracle", .shards = shards, .inputs = shards * cases, .run = [](std::uint64_t shard) {
         return Checked{.inputs = cases,
                        .difference = first_difference_of_fast_half(1000 + 8 * shard, cases)};
       }});
}

}  // namespace
}  // namespace oracle
