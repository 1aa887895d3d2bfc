#include "fp16/code_histogram.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "fp16/exponent_histogram.h"
#include "tests/foreign_environment.h"

using fp16::CodeHistogram;

namespace {

using Codes = std::vector<std::uint16_t>;

CodeHistogram histogram_of(std::span<const std::uint16_t> codes) {
  CodeHistogram histogram;
  histogram.add(codes);
  return histogram;
}

/// The definition: one increment a code.
struct SlowHistogram {
  std::vector<std::uint64_t> counts = std::vector<std::uint64_t>(CodeHistogram::code_count);
  std::uint64_t total = 0;

  void add(std::span<const std::uint16_t> codes) {
    for (const std::uint16_t code : codes) ++counts[code];
    total += codes.size();
  }

  bool equals(const CodeHistogram& histogram) const {
    bool equal = total == histogram.total();
    for (std::size_t code = 0; code < counts.size(); ++code)
      equal &= counts[code] == histogram.count(static_cast<std::uint16_t>(code));
    return equal;
  }
};

Codes random_codes(std::size_t size, unsigned seed, const std::function<std::uint16_t(std::mt19937&)>& draw) {
  std::mt19937 random(seed);
  Codes codes(size);
  for (std::uint16_t& code : codes) code = draw(random);
  return codes;
}

std::uint16_t any_code(std::mt19937& random) {
  return static_cast<std::uint16_t>(random());
}

/// Two thirds are zeros of either sign.
std::uint16_t sparse_code(std::mt19937& random) {
  const auto code = static_cast<std::uint16_t>(random());
  return random() % 3 == 0 ? code : code & 0x8000;
}

}  // namespace

TEST_CASE("an empty code histogram has no codes") {
  const CodeHistogram histogram;
  CHECK(histogram.total() == 0);
  CHECK(SlowHistogram().equals(histogram));
  CHECK(histogram == histogram_of({}));
}

TEST_CASE("every code counts as itself, as often as it occurs") {
  Codes codes;
  SlowHistogram expected;
  for (std::size_t code = 0; code < CodeHistogram::code_count; ++code) {
    const std::size_t times = code % 7 + (code % 1000 == 0 ? 300 : 0);
    codes.insert(codes.end(), times, static_cast<std::uint16_t>(code));
  }
  for (const unsigned seed : {0, 1}) {
    expected.add(codes);
    CodeHistogram histogram;
    for (unsigned i = 0; i <= seed; ++i) histogram.add(codes);
    CHECK(expected.equals(histogram));
    CHECK(histogram.count(7000) == (1 + seed) * (7000 % 7 + 300));
    std::ranges::shuffle(codes, std::mt19937(seed));
  }
}

TEST_CASE("code histograms of spans of every length and alignment") {
  const Codes codes = random_codes(7000, 1, sparse_code);
  for (const std::size_t offset : {0, 1, 15, 31}) {
    for (std::size_t size = 0; size < 6900; size += size < 200 || size % 2048 > 2040 ? 1 : 7) {
      const auto part = std::span(codes).subspan(offset, size);
      CAPTURE(offset);
      CAPTURE(size);
      SlowHistogram expected;
      expected.add(part);
      REQUIRE(expected.equals(histogram_of(part)));
    }
  }
}

TEST_CASE("code histograms of runs and mixtures") {
  const std::size_t size = 100'003;
  const auto check = [](const Codes& codes) {
    SlowHistogram expected;
    expected.add(codes);
    CHECK(expected.equals(histogram_of(codes)));
  };
  check(random_codes(size, 2, any_code));
  check(random_codes(size, 3, sparse_code));
  // One code, or one magnitude of either sign, and what is counted as it for a while.
  for (const std::uint16_t code : {0x0000, 0x8000, 0x0001, 0x001f, 0x0020, 0x3c00, 0x7fff, 0xffff, 0xffe0}) {
    CAPTURE(code);
    check(Codes(size, code));
    check(random_codes(size, code, [code](std::mt19937& random) {
      return static_cast<std::uint16_t>(code ^ (random() & 1) << 15);
    }));
    check(random_codes(size, code, [code](std::mt19937& random) {
      return static_cast<std::uint16_t>(code ^ (random() % 4 == 0 ? random() & 0x801f : 0));
    }));
  }
  // Runs of all lengths: the frequent code changes, and groups begin and end within them.
  Codes runs;
  std::mt19937 random(4);
  while (runs.size() < 2 * size) runs.insert(runs.end(), random() % 3000 >> random() % 12, any_code(random));
  check(runs);
}

TEST_CASE("code histograms do not depend on how the codes were split, ordered or shared out to threads") {
  Codes codes = random_codes(300'000, 5, sparse_code);
  const CodeHistogram whole = histogram_of(codes);
  std::mt19937 random(6);
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::ranges::shuffle(codes, random);
    CodeHistogram first, second;
    for (std::span<const std::uint16_t> rest(codes); !rest.empty();) {
      const std::size_t size = std::min<std::size_t>(rest.size(), random() % 20'000);
      (random() % 2 ? first : second).add(rest.first(size));
      rest = rest.subspan(size);
    }
    CHECK_FALSE(first == whole);
    first += second;
    CHECK(first == whole);
    CHECK(first.total() == codes.size());
  }
  for (const std::size_t threads : {2, 3, 7}) {
    std::vector<CodeHistogram> parts(threads);
    std::vector<std::thread> workers;
    const std::size_t size = codes.size() / threads + 1;
    for (std::size_t i = 0; i < threads; ++i) {
      const std::size_t begin = i * size;
      workers.emplace_back([&, begin, i] {
        parts[i].add(std::span(codes).subspan(begin, std::min(size, codes.size() - begin)));
      });
    }
    for (std::thread& worker : workers) worker.join();
    CodeHistogram sum;
    for (const CodeHistogram& part : parts) sum += part;
    CHECK(sum == whole);
  }
}

TEST_CASE("code histograms count beyond 2^32") {
  const std::size_t size = std::size_t{1} << 22;
  const Codes codes(size, 0xbc00);
  CodeHistogram histogram;
  histogram.add(std::vector<std::uint16_t>{0x1234});
  for (int i = 0; i < 1025; ++i) histogram.add(codes);
  CHECK(histogram.count(0xbc00) == 1025 * size);
  CHECK(histogram.count(0x1234) == 1);
  CHECK(histogram.total() == 1025 * size + 1);
  histogram += CodeHistogram(histogram);
  CHECK(histogram.count(0xbc00) == 2050 * size);
}

TEST_CASE("code histograms give the exponent histogram of their values, in any floating-point environment") {
  Codes codes = random_codes(200'000, 7, any_code);
  for (std::size_t code = 0; code < CodeHistogram::code_count; ++code)
    codes.push_back(static_cast<std::uint16_t>(code));
  const CodeHistogram counts = histogram_of(codes);
  std::vector<float> of_bfloat16;
  for (const std::uint16_t code : codes)
    of_bfloat16.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16));
  fp16::ExponentHistogram halves, bfloats;
  halves.add(std::span<const std::uint16_t>(codes));
  bfloats.add(std::span<const float>(of_bfloat16));
  fp16::ExponentHistogram found_halves, found_bfloats;
  found_halves.add(counts, fp16::binary16);
  found_bfloats.add(counts, fp16::bfloat16);
  CHECK(found_halves == halves);
  CHECK(found_bfloats == bfloats);
  for (const test::Environment& environment : test::environments) {
    fp16::ExponentHistogram found;
    {
      const test::Inside inside(environment);
      found.add(counts, fp16::bfloat16);
    }
    INFO(environment.name);
    CHECK(found == bfloats);
  }
  found_halves.add(counts, fp16::binary16);
  halves += halves;
  CHECK(found_halves == halves);
  CHECK_THROWS_WITH_AS(found_halves.add(counts, fp16::e4m3),
                       "format: e4m3 is not allowed; allowed: binary16, bfloat16", std::invalid_argument);
}
