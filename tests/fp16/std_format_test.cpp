#include "fp16/std_format.h"

#include <doctest/doctest.h>

#include <limits>

#include "fp16/half_text.h"

namespace fp16 {
namespace {

#ifdef __cpp_lib_format
using Limits = std::numeric_limits<half>;

TEST_CASE("std::format: the shortest decimal without precision and type, else the exact value") {
  CHECK(std::format("{}", 0.1_h) == "0.1");
  CHECK(std::format("{:>8}", 0.1_h) == "     0.1");
  CHECK(std::format("{:a^+8}", 0.1_h) == "aa+0.1aa");
  CHECK(std::format("{:{}}", 0.1_h, 5) == "  0.1");
  CHECK(std::format("{} {} {}", Limits::max(), -Limits::infinity(), Limits::quiet_NaN()) == "65504 -inf nan");
  CHECK(std::format("{:.10}", 0.1_h) == "0.09997558594");
  CHECK(std::format("{:e}", 0.1_h) == "9.997559e-02");
}

TEST_CASE("std::format: every finite half reads back") {
  int wrong = 0;
  for (int code = 0; code < 0x10000; ++code) {
    const half a = half::from_bits(static_cast<std::uint16_t>(code));
    wrong += isfinite(a) && parse_half(std::format("{}", a)).bits() != a.bits();
  }
  CHECK(wrong == 0);
}
#else
TEST_CASE("std::format of halves") {
  MESSAGE("skipped: this standard library has no std::format");
}
#endif

}  // namespace
}  // namespace fp16
