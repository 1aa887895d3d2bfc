#include "sim/optimizers/dynamic_map.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "tests/oracle/decimal_text.h"

namespace {

using sim::DynamicMap;

/// The kernel's walk: from code 127 up or down by 64, 32, ... 1, and in the end the nearer of the two
/// neighbours it stands between, by their midpoint; then a negative value must not have become 0.
std::uint8_t walked_code(const DynamicMap& map, float value) {
  const auto& numbers = map.values();
  int at = 127, above = 255, below = 0;
  for (int stride = 64; stride >= 1; stride /= 2) {
    if (value > numbers[at]) {
      below = at;
      at += stride;
    } else {
      above = at;
      at -= stride;
    }
  }
  int code = at;
  if (value > numbers[at]) {
    if (value > (numbers[above] + numbers[at]) * 0.5f) code = above;
  } else {
    if (value < (numbers[below] + numbers[at]) * 0.5f) code = below;
  }
  if (value < 0 && numbers[code] == 0 && numbers[0] < 0) --code;
  return static_cast<std::uint8_t>(code);
}

/// Every entry by the formula in exact arithmetic, ascending.
std::vector<oracle::Rational> exact_entries(bool has_sign) {
  std::vector<oracle::Rational> entries{0, 1};
  for (int decade = 0; decade < 7; ++decade) {
    const int count = has_sign ? 1 << decade : 2 << decade;
    for (int i = 0; i < count; ++i) {
      const oracle::Rational fraction =
          oracle::Rational(1, 10) + oracle::Rational(9 * (2 * i + 1), 20 * count);
      entries.push_back(fraction * oracle::power_of_ten(decade - 6));
      if (has_sign) entries.push_back(-entries.back());
    }
  }
  std::ranges::sort(entries);
  return entries;
}

}  // namespace

TEST_CASE("dynamic map: entries are those of bitsandbytes") {
  const auto& with_sign = DynamicMap::with_sign().values();
  const auto& without = DynamicMap::without_sign().values();
  CHECK(DynamicMap::with_sign().code_of_zero() == 127);
  CHECK(DynamicMap::without_sign().code_of_zero() == 0);
  CHECK(with_sign[0] == -0.992968738079071f);  // as torch 2 prints it
  CHECK(with_sign[255] == 1);
  CHECK(without[255] == 1);
  // From a separate program that repeats the binary32 operations.
  CHECK(std::vector{with_sign[1], with_sign[63], with_sign[126], with_sign[128], with_sign[129],
                    with_sign[192]} == std::vector{-0x1.f53334p-1f, -0x1.b66668p-4f, -0x1.27476ep-21f,
                                                   0x1.27476ep-21f, 0x1.b43528p-19f, 0x1.fp-4f});
  CHECK(std::vector{without[1], without[63], without[126], without[128], without[192], without[254]} ==
        std::vector{0x1.5cf754p-22f, 0x1.5eb854p-7f, 0x1.96b852p-4f, 0x1.c4ccccp-4f, 0x1.1fp-1f,
                    0x1.fe3334p-1f});
  for (int code = 0; code < 127; ++code) CHECK(with_sign[code] == -with_sign[254 - code]);
  CHECK(std::ranges::count_if(without, [](float number) { return number < 0; }) == 0);
}

TEST_CASE("dynamic map: entries lie within two units in the last place of the formula") {
  for (const bool has_sign : {true, false}) {
    const std::vector<oracle::Rational> exact = exact_entries(has_sign);
    const auto& numbers = (has_sign ? DynamicMap::with_sign() : DynamicMap::without_sign()).values();
    REQUIRE(exact.size() == numbers.size());
    for (std::size_t code = 0; code < numbers.size(); ++code) {
      const oracle::Rational error = abs(oracle::Rational(numbers[code]) - exact[code]);
      CHECK(error <= abs(exact[code]) * oracle::Rational(1, 1 << 22));
      if (code != 0) CHECK(numbers[code - 1] < numbers[code]);
    }
  }
}

TEST_CASE("dynamic map: the nearest code is where the kernel's search ends") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const DynamicMap* map : {&DynamicMap::with_sign(), &DynamicMap::without_sign()}) {
    std::vector<float> values{0.0f,     1.0f,      -1.0f,         2.0f,   -2.0f,
                              infinity, -infinity, std::nanf(""), 1e-30f, -1e-30f};
    for (int code = 0; code < 255; ++code) {
      const float midpoint = (map->values()[code] + map->values()[code + 1]) * 0.5f;
      for (const float value : {map->values()[code], map->values()[code + 1], midpoint}) {
        values.insert(values.end(),
                      {value, std::nextafter(value, infinity), std::nextafter(value, -infinity)});
      }
    }
    for (std::uint32_t prefix = 0; prefix < 0x10000; ++prefix) {
      for (const std::uint32_t low : {0x0000u, 0x7fffu, 0xffffu})
        values.push_back(std::bit_cast<float>(prefix << 16 | low));
    }
    int differences = 0;
    for (const float value : values) differences += map->nearest(value) != walked_code(*map, value);
    CHECK(differences == 0);
  }
}

TEST_CASE(
    "dynamic map: every float of the highest binade, and those around every border, one by one or as a "
    "block") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const DynamicMap* map : {&DynamicMap::with_sign(), &DynamicMap::without_sign()}) {
    std::vector<float> values{1};  // the maximum of the block, so that none is scaled
    for (float value = 0.5f; value < 1; value = std::nextafter(value, infinity)) values.push_back(value);
    for (int code = 0; code < 255; ++code) {
      const float midpoint = (map->values()[code] + map->values()[code + 1]) * 0.5f;
      for (const float value :
           {midpoint, std::nextafter(midpoint, infinity), std::nextafter(midpoint, -infinity)})
        values.insert(values.end(), {value, -value});
    }
    std::vector<std::uint8_t> codes(values.size());
    CHECK(map->quantise(values, codes) == 1);
    std::size_t differences = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint8_t expected = walked_code(*map, values[i]);
      differences += (codes[i] != expected) + (map->nearest(values[i]) != expected);
      if (map == &DynamicMap::with_sign())
        differences += map->nearest(-values[i]) != walked_code(*map, -values[i]);
    }
    CHECK(differences == 0);
  }
}

TEST_CASE("dynamic map: midpoints go to the even code, small values to zero unless they are negative") {
  const DynamicMap& map = DynamicMap::with_sign();
  const auto midpoint = [&](int code) { return (map.values()[code] + map.values()[code + 1]) * 0.5f; };
  CHECK(map.nearest(midpoint(200)) == 200);
  CHECK(map.nearest(midpoint(201)) == 202);
  CHECK(map.nearest(1e-9f) == 127);
  CHECK(map.nearest(-1e-9f) == 126);
  CHECK(map.nearest(-0.0f) == 127);
  CHECK(map.nearest(std::nanf("")) == 0);
}

TEST_CASE("dynamic map: a block keeps its maximum and every other value to half a step") {
  std::mt19937 random(3);
  std::vector<float> values(DynamicMap::block), back(DynamicMap::block);
  std::vector<std::uint8_t> codes(DynamicMap::block);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 2001) - 1000) * 0x1p-14f;
  values[77] = 1001 * 0x1p-14f;
  CHECK(DynamicMap::with_sign().quantise(values, codes) == values[77]);
  DynamicMap::with_sign().dequantise(codes, values[77], back);
  CHECK(back[77] == values[77]);
  const auto& numbers = DynamicMap::with_sign().values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double scaled = static_cast<double>(values[i]) / values[77];
    const auto above = std::ranges::lower_bound(numbers, static_cast<float>(scaled));
    const double gap = above == numbers.begin() ? 0.0141 : *above - *(above - 1);
    CHECK(std::fabs(back[i] - values[i]) <= 0.5001 * gap * values[77] + 1e-7 * values[77]);
  }
  std::ranges::fill(values, 0.0f);
  CHECK(DynamicMap::with_sign().quantise(values, codes) == 0);
  CHECK(std::ranges::count(codes, 127) == 256);
}
