#include "experiments/frame/crc32.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string_view>

namespace {

std::uint32_t crc32_of(std::string_view text, std::uint32_t before = 0) {
  return experiments::crc32(std::as_bytes(std::span(text)), before);
}

/// Bit by bit, by the definition.
std::uint32_t division(std::string_view text) {
  std::uint32_t remainder = 0xffffffff;
  for (const char character : text) {
    remainder ^= static_cast<unsigned char>(character);
    for (int bit = 0; bit < 8; ++bit) remainder = (remainder >> 1) ^ (remainder & 1 ? 0xedb88320 : 0);
  }
  return ~remainder;
}

}  // namespace

TEST_CASE("CRC-32 has the published check value") {
  CHECK(crc32_of("123456789") == 0xcbf43926);
  CHECK(crc32_of("") == 0);
}

TEST_CASE("CRC-32 of two parts is that of the whole, also where one is empty") {
  constexpr std::string_view text = "a row of a table, 1, 2, 3\n";
  for (std::size_t at = 0; at <= text.size(); ++at) {
    CHECK(crc32_of(text.substr(at), crc32_of(text.substr(0, at))) == division(text));
  }
  CHECK(experiments::crc32({}, 0x12345678) == 0x12345678);
}
