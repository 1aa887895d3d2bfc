#include "sim/tensor/fingerprint.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <set>
#include <vector>

namespace {

double fingerprint_of(std::initializer_list<std::vector<float>> tensors) {
  sim::Fingerprint fingerprint;
  for (const std::vector<float>& values : tensors)
    fingerprint.add(sim::Tensor::from({values.size()}, values));
  return fingerprint.value();
}

}  // namespace

TEST_CASE("fingerprint: each bit of each element counts, and their order") {
  std::vector<float> values(3000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) / 8;
  std::set<double> seen{fingerprint_of({values})};
  std::size_t tried = 1;
  for (const std::size_t i : {0, 1, 7, 8, 1023, 1024, 2999}) {
    for (int bit = 0; bit < 32; ++bit) {
      std::vector<float> other = values;
      other[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(other[i]) ^ std::uint32_t{1} << bit);
      seen.insert(fingerprint_of({other}));
      ++tried;
    }
  }
  std::vector<float> exchanged = values;
  std::swap(exchanged[5], exchanged[6]);
  seen.insert(fingerprint_of({exchanged}));
  std::swap(exchanged[8], exchanged[16]);
  seen.insert(fingerprint_of({exchanged}));
  CHECK(seen.size() == tried + 2);
  for (const double value : seen) CHECK(value == std::floor(value));
}

TEST_CASE("fingerprint: two bits that are turned do not make up for each other") {
  std::set<double> seen;
  for (int first = 0; first < 32; ++first) {
    for (int second = 0; second < 32; ++second) {
      const auto one_and = [](int bit) { return std::bit_cast<float>(0x3f800000 ^ std::uint32_t{1} << bit); };
      seen.insert(fingerprint_of({{one_and(first), one_and(second)}}));
    }
  }
  CHECK(seen.size() == 32 * 32);
  CHECK(!seen.contains(fingerprint_of({{1, 1}})));
  CHECK(fingerprint_of({{1, 2, 3}}) != fingerprint_of({{-1, -2, 3}}));
  CHECK(fingerprint_of({{0, 0, 0}}) != fingerprint_of({{-0.0F, -0.0F, 0}}));
}

TEST_CASE("fingerprint: it is that of the values in binary16 as in binary32, and of NaNs the same") {
  const sim::Tensor wide = sim::Tensor::from({3}, std::vector<float>{1, 2, 3});
  sim::Fingerprint narrow, two;
  narrow.add(sim::rounded(wide, fp16::binary16));
  CHECK(narrow.value() == fingerprint_of({{1, 2, 3}}));
  CHECK(fingerprint_of({{1, 2, 3}}) != fingerprint_of({{1}, {2, 3}}));
  two.add(wide);
  two.add(wide);
  CHECK(two.value() != narrow.value());
  const float one = std::bit_cast<float>(0x7fc00001), other = std::bit_cast<float>(0xffc12345);
  CHECK(fingerprint_of({{1, one}}) == fingerprint_of({{1, other}}));
  CHECK(fingerprint_of({{1, one}}) != fingerprint_of({{1, INFINITY}}));
}
