#include "tests/oracle/fast_half.h"

#include <doctest/doctest.h>

#include "tests/oracle/fast_half_agreement.h"

namespace oracle {
namespace {

TEST_CASE("the fast oracle agrees with exact rationals and with MPFR on 200,000 cases of each operation") {
  CHECK(first_difference_of_fast_half(1, 200'000) == "");
}

}  // namespace
}  // namespace oracle
