#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

#include "tests/fp16/elementary_oracle.h"
#include "tests/oracle/agreement.h"
#include "tests/oracle/sweep.h"

namespace fp16 {
namespace {

/// All 2^32 floats; the stated maximum error must hold, and be tight to 0.02 ulp.
void check_maximum_error(std::string_view name) {
  constexpr std::uint64_t floats = std::uint64_t{1} << 32, shards = 1024;
  const auto is_named = [&](const ElementaryFunction& each) { return each.name == name; };
  const ElementaryFunction& row = *std::ranges::find_if(elementary_functions, is_named);
  const auto run = [&](std::uint64_t shard) {
    oracle::Checked checked{.inputs = floats / shards};
    for (std::uint64_t bits = shard; bits < floats; bits += shards) {
      const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      const float got = row.function(x);
      const double expected = row.reference(x);
      checked.largest = std::max(checked.largest, error_ulp(got, expected));
      if (checked.largest > row.max_error_ulp) {
        checked.difference = std::string(name) + ' ' + oracle::text(bits) + ": got " + std::to_string(got) +
                             ", expected " + std::to_string(expected);
        break;
      }
    }
    return checked;
  };
  const oracle::Checked checked = oracle::check_sweep(
      {.name = "elementary_" + std::string(name), .shards = shards, .inputs = floats, .run = run});
  MESSAGE(name << ": maximum error " << checked.largest << " ulp");
  if (checked.inputs == floats) CHECK(checked.largest > row.max_error_ulp - 0.02);
}

TEST_CASE("the stated maximum error of exp holds for all 2^32 floats, and is tight to 0.02 ulp") {
  check_maximum_error("exp");
}
TEST_CASE("the stated maximum error of log holds for all 2^32 floats, and is tight to 0.02 ulp") {
  check_maximum_error("log");
}
TEST_CASE("the stated maximum error of sigmoid holds for all 2^32 floats, and is tight to 0.02 ulp") {
  check_maximum_error("sigmoid");
}
TEST_CASE("the stated maximum error of expm1 holds for all 2^32 floats, and is tight to 0.02 ulp") {
  check_maximum_error("expm1");
}
TEST_CASE("the stated maximum error of log1p holds for all 2^32 floats, and is tight to 0.02 ulp") {
  check_maximum_error("log1p");
}
TEST_CASE("the stated maximum error of softplus holds for all 2^32 floats, and is tight to 0.02 ulp") {
  check_maximum_error("softplus");
}
TEST_CASE("the stated maximum error of tanh holds for all 2^32 floats, and is tight to 0.02 ulp") {
  check_maximum_error("tanh");
}
TEST_CASE("the stated maximum error of erf holds for all 2^32 floats, and is tight to 0.02 ulp") {
  check_maximum_error("erf");
}
TEST_CASE("the stated maximum error of normal_cdf holds for all 2^32 floats, and is tight to 0.02 ulp") {
  check_maximum_error("normal_cdf");
}

}  // namespace
}  // namespace fp16
