#include "fp16/philox.h"

#include <Random123/philox.h>
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/oracle/hard_cases.h"

namespace fp16 {
namespace {

Philox::Block library_block(const Philox& philox, std::uint64_t number) {
  const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
  const r123::Philox4x32::ctr_type words =
      r123::Philox4x32{}({{low(number), low(number >> 32), low(philox.stream), low(philox.stream >> 32)}},
                         {{low(philox.key), low(philox.key >> 32)}});
  return {words[0], words[1], words[2], words[3]};
}

TEST_CASE("Philox4x32-10 gives its authors' known answers") {
  constexpr std::uint64_t ones = ~std::uint64_t{0};
  static_assert(Philox{0, 0}.block(0) == Philox::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  static_assert(Philox{ones, ones}.block(ones) ==
                Philox::Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  static_assert(Philox{0x299f31d0a4093822, 0x0370734413198a2e}.block(0x85a308d3243f6a88) ==
                Philox::Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("Philox gives its authors' library's blocks, for 2^16 keys, streams and counters") {
  oracle::RandomBits random(51);
  for (int i = 0; i < 1 << 16; ++i) {
    const Philox philox{random.next(), random.next()};
    const std::uint64_t number = random.next() >> random.below(64);
    REQUIRE(philox.block(number) == library_block(philox, number));
  }
}

TEST_CASE("Philox fills arrays with its words on every path: any length, any start, only the span") {
  const Philox philox{0xfedcba9876543210, 0x123456789};
  constexpr std::uint32_t untouched = 0x5aa55aa5;
  for (const VectorPath path : available_vector_paths()) {
    CAPTURE(name_of(path));
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{7},
                                      (std::uint64_t{1} << 34) - 9, ~std::uint64_t{0} - 4000}) {
      CAPTURE(first);
      for (const std::size_t length : {0, 1, 2, 3, 4, 5, 63, 64, 65, 1023, 1024, 1025, 2049, 3001}) {
        std::vector<std::uint32_t> words(length + 2, untouched);
        fill_bits(philox, first, std::span(words).subspan(1, length), path);
        bool right = words.front() == untouched && words.back() == untouched;
        for (std::size_t i = 0; i < length; ++i)
          right &= words[i + 1] == library_block(philox, (first + i) / 4)[(first + i) % 4];
        CAPTURE(length);
        CHECK(right);
      }
    }
  }
}

}  // namespace
}  // namespace fp16
