#include "fp16/sign.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

#include "tests/oracle/format_agreement.h"

namespace fp16 {
namespace {

static_assert(abs<binary16>(0xfd01) == 0x7d01);
static_assert(copy_sign<binary16>(0x7e01, 0x8000) == 0xfe01);
static_assert(abs<e4m3_fnuz>(0x80) == 0x80);
static_assert(copy_sign<e4m3_fnuz>(0x80, 0x01) == 0x80);
static_assert(copy_sign<e4m3_fnuz>(0x00, 0x81) == 0x00);
static_assert(copy_sign<e8m0>(0x7f, 0xff) == 0x7f);

TEST_CASE("abs, negate and copy_sign of all numbers of the formats of at most 8 bits") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.width() <= 8 && F.is_signed()) {
      CAPTURE(name_of(F));
      const oracle::ExactFormat& format = oracle::exact<F>();
      const auto same = [](double a, double b) { return a == b && std::signbit(a) == std::signbit(b); };
      bool all_equal = true;
      for (std::uint64_t code = 0; code < format.codes(); ++code) {
        const auto a = static_cast<Bits<F>>(code);
        const double x = format.value(code);
        if (std::isnan(x)) continue;
        const bool unsigned_zero = x == 0 && !F.has_negative_zero();
        all_equal &= same(format.value(abs<F>(a)), std::fabs(x));
        all_equal &= same(format.value(negate<F>(a)), unsigned_zero ? x : -x);
        for (const Bits<F> sign : {Bits<F>{1}, static_cast<Bits<F>>(sign_mask<F> | 1)}) {
          const double expected = unsigned_zero ? x : std::copysign(x, format.value(sign));
          all_equal &= same(format.value(copy_sign<F>(a, sign)), expected);
        }
      }
      CHECK(all_equal);
    }
  });
}

}  // namespace
}  // namespace fp16
