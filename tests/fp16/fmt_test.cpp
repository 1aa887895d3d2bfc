#include "fp16/fmt.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>

#include "fp16/half_text.h"

namespace fp16 {
namespace {

using Limits = std::numeric_limits<half>;

TEST_CASE("fmt: the shortest decimal without precision and type") {
  CHECK(fmt::format("{}", 0.1_h) == "0.1");
  CHECK(fmt::format("{:>8}", 0.1_h) == "     0.1");
  CHECK(fmt::format("{:.<8}", 0.1_h) == "0.1.....");
  CHECK(fmt::format("{:a^7}", 0.1_h) == "aa0.1aa");
  CHECK(fmt::format("{:+08}", 0.1_h) == "+00000.1");
  CHECK(fmt::format("{:{}}", 0.1_h, 5) == "  0.1");
  CHECK(fmt::format("{0:{width}}", 0.1_h, fmt::arg("width", 5)) == "  0.1");
  CHECK(fmt::format("{} {} {}", Limits::max(), -Limits::infinity(), Limits::quiet_NaN()) == "65504 -inf nan");
  CHECK(fmt::format("{}", -0.0_h) == "-0");
}

TEST_CASE("fmt: the exact value with a precision or a type") {
  CHECK(fmt::format("{:.10}", 0.1_h) == "0.09997558594");
  CHECK(fmt::format("{:.3f}", 0.1_h) == "0.100");
  CHECK(fmt::format("{:.{}f}", 0.1_h, 7) == "0.0999756");
  CHECK(fmt::format("{:e}", 0.1_h) == "9.997559e-02");
  CHECK(fmt::format("{:*>9.2E}", 0.1_h) == "*1.00E-01");
  CHECK(fmt::format("{:a}", 0.1_h) == "0x1.998p-4");
}

TEST_CASE("fmt: every finite half reads back") {
  int wrong = 0;
  for (int code = 0; code < 0x10000; ++code) {
    const half a = half::from_bits(static_cast<std::uint16_t>(code));
    wrong += isfinite(a) && parse_half(fmt::format("{}", a)).bits() != a.bits();
  }
  CHECK(wrong == 0);
}

TEST_CASE("fmt: specifications that floating-point numbers do not have") {
  CHECK_THROWS_AS((void)fmt::format(fmt::runtime("{:d}"), 1_h), fmt::format_error);
  CHECK_THROWS_AS((void)fmt::format(fmt::runtime("{:.}"), 1_h), fmt::format_error);
}

}  // namespace
}  // namespace fp16
