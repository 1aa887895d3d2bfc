/// Binary64 cannot be exhausted: here are the million samples that its stated maximum errors rest on.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "tests/fp16/elementary_mpfr.h"
#include "tests/oracle/sweep.h"

namespace fp16 {
namespace {

/// Numbers far from those of the quick test.
constexpr std::uint64_t first_sample = std::uint64_t{1} << 32;

template <class ErrorOfSample>
void check_samples(std::string_view name, double max_error_ulp, ErrorOfSample error_of_sample) {
  constexpr std::uint64_t samples = 1'200'000, shards = 240;
  const auto run = [&](std::uint64_t shard) {
    oracle::Checked checked{.inputs = samples / shards};
    for (std::uint64_t i = shard * checked.inputs; i < (shard + 1) * checked.inputs; ++i) {
      const double error = error_of_sample(first_sample + i);
      checked.largest = std::max(checked.largest, error);
      if (error > max_error_ulp) {
        checked.difference =
            std::string(name) + " sample " + std::to_string(i) + ": error " + std::to_string(error) + " ulp";
        break;
      }
    }
    return checked;
  };
  const oracle::Checked checked = oracle::check_sweep(
      {.name = "elementary_double_" + std::string(name), .shards = shards, .inputs = samples, .run = run});
  MESSAGE(name << ": largest error " << checked.largest << " ulp");
}

TEST_CASE("the stated maximum errors of binary64 hold for a million samples of each function") {
  for (const DoubleFunction& row : double_functions) {
    check_samples(row.name, row.max_error_ulp,
                  [&](std::uint64_t index) { return error_at(row, sample(index, row.range)); });
  }
}

TEST_CASE("the stated maximum error of pow in binary64 holds for a million samples") {
  check_samples("pow", max_error_of_pow, [](std::uint64_t index) { return error_at(sample_power(index)); });
}

}  // namespace
}  // namespace fp16
