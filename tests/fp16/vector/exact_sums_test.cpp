#include "fp16/exact_sums.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "fp16/rounding_names.h"
#include "tests/oracle/hard_cases.h"

namespace fp16 {
namespace {

using Codes = std::vector<std::uint16_t>;
using Accumulator = ExactAccumulator<binary16>;

/// Whether two accumulators cannot be told apart: in all directions, and with one more term.
void require_equal(const Accumulator& a, const Accumulator& b) {
  for (const NamedRounding& named : named_roundings) {
    const Attributes attributes{.rounding = named.rounding, .random_bits = 0x8000'0000'0000'0000u};
    REQUIRE(a.rounded<binary64>(attributes).bits == b.rounded<binary64>(attributes).bits);
    REQUIRE(a.rounded<binary16>(attributes).bits == b.rounded<binary16>(attributes).bits);
    REQUIRE(a.rounded<binary16>(attributes).flags == b.rounded<binary16>(attributes).flags);
  }
}

/// Any code, from a range of exponents that the array has in common; infinities and NaNs where they are asked for.
class HardCodes {
 public:
  explicit HardCodes(std::uint64_t seed) : random_(seed) {}

  std::size_t below(int bound) { return static_cast<std::size_t>(random_.below(bound)); }

  Codes next(std::size_t size, bool with_special) {
    Codes codes(size);
    const std::uint16_t kept = std::array<std::uint16_t, 5>{0xffff, 0x7fff, 0x83ff, 0x8000, 0x0000}[below(5)];
    const auto added = static_cast<std::uint16_t>(below(3) == 0 ? 0x8000 : 0);
    for (std::uint16_t& code : codes) {
      code = static_cast<std::uint16_t>((random_.next() & kept) | added);
      if (!is_finite<binary16>(code)) code &= 0xbfff;
    }
    if (with_special && size > 0) {
      constexpr std::array<std::uint16_t, 5> special{0x7c00, 0xfc00, 0x7e00, 0x7c01, 0xfbff};
      for (int i = 0; i < 3; ++i) codes[below(static_cast<int>(size))] = special[below(5)];
    }
    return codes;
  }

 private:
  oracle::RandomBits random_;
};

void check(const Codes& a, const Codes& b, int threads) {
  Accumulator sum, expected;
  add_values(sum, a, threads);
  for (const std::uint16_t value : a) expected.add(value);
  require_equal(sum, expected);

  add_products(sum, a, b, threads);
  for (std::size_t i = 0; i < a.size(); ++i) expected.add_product(a[i], b[i]);
  require_equal(sum, expected);

  Accumulator products, expected_products;
  add_products(products, a, b, threads);
  for (std::size_t i = 0; i < a.size(); ++i) expected_products.add_product(a[i], b[i]);
  require_equal(products, expected_products);
}

TEST_CASE("sums and dot products of every length are those of the accumulator") {
  HardCodes hard(31);
  for (std::size_t size = 0; size < 100; ++size) {
    for (const bool with_special : {false, true})
      check(hard.next(size, with_special), hard.next(size, false), 1);
  }
  for (int i = 0; i < 300; ++i) {
    const std::size_t size = hard.below(9000);
    check(hard.next(size, i % 5 == 0), hard.next(size, i % 7 == 0), 1 + i % 4);
  }
}

TEST_CASE("the largest and the smallest numbers fill the integers that add them up") {
  for (const std::uint16_t largest : {0x7bff, 0xfbff}) {
    check(Codes(1 << 20, largest), Codes(1 << 20, 0x7bff), 1);
    check(Codes(1 << 20, largest), Codes(1 << 20, 0x8001), 1);
  }
  Codes cancelling(1 << 16, 0x7bff);
  for (std::size_t i = 0; i < cancelling.size(); i += 2) cancelling[i] = 0xfbff;
  cancelling.back() = 0x0001;
  check(cancelling, Codes(cancelling.size(), 0x7bff), 2);
}

TEST_CASE("an array may begin anywhere") {
  HardCodes hard(32);
  const Codes a = hard.next(5000, false), b = hard.next(5000, false);
  for (std::size_t first = 0; first < 33; ++first) {
    Accumulator sum, expected;
    const auto codes = std::span(a).subspan(first, 3000), others = std::span(b).subspan(33 - first, 3000);
    add_products(sum, codes, others);
    for (std::size_t i = 0; i < codes.size(); ++i) expected.add_product(codes[i], others[i]);
    require_equal(sum, expected);
  }
}

TEST_CASE("arrays of different lengths are refused, and fewer than one thread") {
  Accumulator sum;
  CHECK_THROWS_AS(add_products(sum, Codes(3), Codes(4)), std::invalid_argument);
  CHECK_THROWS_AS(add_values(sum, Codes(3), 0), std::invalid_argument);
}

}  // namespace
}  // namespace fp16
