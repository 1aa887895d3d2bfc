#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/data/dataset.h"

namespace sim {
namespace {

/// Bytes 0, 1, 2 ..., so that tokens are places in the text.
TextDataset places(std::size_t size, std::size_t context) {
  std::string text(size, '\0');
  std::iota(text.begin(), text.end(), '\0');
  return TextDataset({.name = "places", .text = text, .context = context});
}

TEST_CASE("windows are consecutive tokens, each labelled with the next one") {
  const TextDataset text = places(47, 3);
  CHECK(text.kind() == DataKind::text);
  CHECK(text.context() == 3);
  CHECK(text.vocabulary().size() == 47);
  CHECK(!text.entropy_rate().has_value());
  const Batch batch = text.training_batch(std::vector<std::uint32_t>{0, 39, 7});
  CHECK(batch.size == 3);
  CHECK(batch.tokens == std::vector<std::int32_t>{0, 1, 2, 39, 40, 41, 7, 8, 9});
  CHECK(batch.labels == std::vector<std::int32_t>{1, 2, 3, 40, 41, 42, 8, 9, 10});
  CHECK(batch.inputs.empty());
  CHECK(batch.boxes.empty());
}

TEST_CASE("the last tenth is for testing, and no window crosses into it") {
  // 47 bytes: 43 for training, where windows start at 0 .. 39; places 43 .. 46 hold one test window.
  const TextDataset text = places(47, 3);
  CHECK(text.training_size() == 40);
  CHECK(text.test_size() == 1);
  CHECK(text.test_batch(0, 1).tokens == std::vector<std::int32_t>{43, 44, 45});
  CHECK(text.test_batch(0, 1).labels == std::vector<std::int32_t>{44, 45, 46});
  CHECK_THROWS_AS(text.training_batch(std::vector<std::uint32_t>{40}), std::invalid_argument);
  // 250 bytes: places 225 .. 249 are for testing, eight windows.
  const TextDataset longer = places(250, 3);
  CHECK(longer.test_size() == 8);
  CHECK(longer.test_batch(6, 2).tokens == std::vector<std::int32_t>{243, 244, 245, 246, 247, 248});
  CHECK(longer.test_batch(7, 1).labels == std::vector<std::int32_t>{247, 248, 249});
}

TEST_CASE("an epoch takes windows end to end from an offset of its own, in an order of its own") {
  for (const std::size_t size : {110, 200, 201, 202, 203, 204, 205}) {
    CAPTURE(size);
    const TextDataset text = places(size, 5);
    std::set<std::uint32_t> offsets;
    std::set<std::vector<std::uint32_t>> orders;
    for (std::uint64_t epoch = 0; epoch < 60; ++epoch) {
      std::vector<std::uint32_t> order = text.epoch_order(3, epoch);
      CHECK(order == text.epoch_order(3, epoch));
      CHECK(order != text.epoch_order(4, epoch));
      CHECK(order.size() == text.epoch_size());
      orders.insert(order);
      std::ranges::sort(order);
      offsets.insert(order.front());
      CHECK(order.front() < 5);
      for (std::size_t i = 1; i < order.size(); ++i) CHECK(order[i] == order[i - 1] + 5);
      CHECK(order.back() < text.training_size());
      CHECK(order.back() + 2 * 5 >= text.training_size());  // less than two windows are left out
    }
    CHECK(offsets.size() == 5);
    CHECK(orders.size() == 60);
  }
}

TEST_CASE("a sampler passes through epochs of a text") {
  const TextDataset text = places(60, 5);
  std::vector<std::uint32_t> starts;
  BatchSampler sampler(text, 9, 4);
  for (std::uint64_t step = 0; starts.size() < 3 * text.epoch_size(); ++step) {
    const Batch batch = sampler.batch(step);
    for (std::size_t row = 0; row < 4; ++row)
      starts.push_back(static_cast<std::uint32_t>(batch.tokens[row * 5]));
  }
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const auto first = starts.begin() + static_cast<std::ptrdiff_t>(epoch * text.epoch_size());
    CHECK(std::vector<std::uint32_t>(first, first + static_cast<std::ptrdiff_t>(text.epoch_size())) ==
          text.epoch_order(9, epoch));
  }
}

TEST_CASE("tokens number the bytes that occur, the unsigned ascending") {
  using namespace std::string_literals;
  std::string text;
  for (int i = 0; i < 20; ++i) text += "\xff\0a\n\x80"s;
  const TextDataset data({.name = "bytes", .text = text, .context = 4});
  CHECK(data.vocabulary() == "\0\na\x80\xff"s);
  CHECK(data.training_batch(std::vector<std::uint32_t>{0}).tokens == std::vector<std::int32_t>{4, 0, 2, 1});
}

TEST_CASE("the unigram entropy is that of the test labels") {
  // 90 + 10 bytes; of the test part, .aabbbaabb, the labels of two windows of four are aabbbaab.
  const TextDataset even({.name = "even", .text = std::string(90, 'x') + ".aabbbaabb", .context = 4});
  CHECK(even.unigram_entropy() == doctest::Approx(std::log(2.0)).epsilon(1e-6));
  const TextDataset skew({.name = "skew", .text = std::string(90, 'x') + ".aabacaab.", .context = 4});
  CHECK(skew.unigram_entropy() ==
        doctest::Approx(-0.625 * std::log(0.625) - 0.25 * std::log(0.25) - 0.125 * std::log(0.125))
            .epsilon(1e-6));
  const TextDataset none({.name = "none", .text = std::string(100, 'x'), .context = 4});
  CHECK(none.unigram_entropy() == 0);
}

TEST_CASE("texts too short and impossible contexts are refused") {
  CHECK_NOTHROW(places(40, 3));
  CHECK_THROWS_WITH_AS(places(39, 3),
                       "data 'places': 39 bytes found, 40 .. 268435456 needed for a context of 3",
                       std::invalid_argument);
  CHECK_THROWS_AS(places(0, 3), std::invalid_argument);
  CHECK_THROWS_WITH_AS(places(39, 0), "data 'places': context 0 is not allowed; 1 .. 268435456 tokens are",
                       std::invalid_argument);
  CHECK_THROWS_AS(places(39, ~std::size_t{0}), std::invalid_argument);
}

}  // namespace
}  // namespace sim
