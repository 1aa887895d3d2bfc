#include "sim/tensor/tensor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

using sim::Tensor;

TEST_CASE("tensor: storage is as wide as the format") {
  CHECK(Tensor({3, 5}, fp16::binary16).size_bytes() == 30);
  CHECK(Tensor({3, 5}, fp16::binary32).size_bytes() == 60);
  CHECK(Tensor({3, 5}, fp16::binary64).size_bytes() == 120);
  CHECK(Tensor({3, 5}, fp16::bfloat16).size_bytes() == 30);
  CHECK_THROWS_WITH_AS(
      Tensor({1}, fp16::e5m2),
      "tensor: no storage for format e5m2; binary16, bfloat16, binary32 and binary64 have one",
      std::invalid_argument);
  CHECK_THROWS_AS(Tensor::from({2, 2}, std::vector<float>{1, 2, 3}), std::invalid_argument);
}

TEST_CASE("tensor: a store rounds once to nearest even and counts what was lost") {
  const std::vector<float> values{1.0f, 0.1f, 0x1p-25f, 0x1.000002p-25f, 0x1p-20f, 65519.0f, 65520.0f, 0.0f};
  Tensor tensor({values.size()}, fp16::binary16);
  fp16::RoundingCounts counts;
  sim::store({&tensor, &counts}, 0, values);
  const std::vector<double> expected{1.0, 0x1.998p-4, 0.0, 0x1p-24, 0x1p-20, 65504.0, INFINITY, 0.0};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(tensor.element(i) == expected[i]);
  CHECK(counts.flushed == 1);
  CHECK(counts.subnormal == 2);
  CHECK(counts.overflowed == 1);
}

TEST_CASE("tensor: a binary64 value reaches FP16 with one rounding") {
  Tensor tensor({1}, fp16::binary16);
  const double just_above_a_tie = 1 + 0x1p-11 + 0x1p-40;  // through binary32 it would become the tie, then 1
  sim::store({&tensor}, 0, std::span(&just_above_a_tie, 1));
  CHECK(tensor.element(0) == 1 + 0x1p-10);
}

TEST_CASE("tensor: binary64 values are rounded alike with counts and without, and each is counted once") {
  const std::vector<double> values{1.0,    1 + 0x1p-11 + 0x1p-40, 0x1p-25, 0x1p-25 + 0x1p-60,
                                   0x1p-7, 65520 - 0x1p-30,       0x1p200, -0x1p-200};
  for (const fp16::Format format : {fp16::binary16, fp16::bfloat16}) {
    CAPTURE(fp16::name_of(format));
    Tensor counted({values.size()}, format), uncounted({values.size()}, format);
    fp16::RoundingCounts counts;
    sim::store({&counted, &counts}, 0, values);
    sim::store({&uncounted}, 0, values);
    CHECK(std::ranges::equal(counted.elements<std::uint16_t>(), uncounted.elements<std::uint16_t>()));
    const bool is_fp16 = format == fp16::binary16;
    CHECK(counts == fp16::RoundingCounts{.exact = is_fp16 ? 2u : 3u,  // bfloat16 has 2^-25, too
                                         .inexact = is_fp16 ? 5u : 4u,
                                         .subnormal = is_fp16 ? 1u : 0u,
                                         .flushed = is_fp16 ? 2u : 1u,
                                         .overflowed = 1});
  }
}

TEST_CASE("tensor: read widens exactly, copies are deep") {
  Tensor tensor({5000}, fp16::binary16);
  for (std::size_t i = 0; i < tensor.size(); ++i)
    tensor.elements<std::uint16_t>()[i] = static_cast<std::uint16_t>(i);
  std::vector<double> wide(tensor.size());
  CHECK(read(tensor, 0, tensor.size(), std::span(wide))[4097] == tensor.to_floats()[4097]);
  CHECK(tensor.to_floats()[1] == 0x1p-24f);
  Tensor copy = tensor;
  copy.elements<std::uint16_t>()[1] = 7;
  CHECK(tensor.element(1) == 0x1p-24);
}

TEST_CASE("tensor: values go to and from every format, rounded once, without a detour") {
  const double value = 1 + 0x1p-8 + 0x1p-24 + 0x1p-40;
  Tensor wide({1}, fp16::binary64);
  wide.elements<double>()[0] = value;
  const auto rounded = [](const Tensor& in, fp16::Format format) {
    Tensor out(in.shape(), format);
    sim::copy_rounded({&out}, in);
    return out;
  };
  CHECK(rounded(wide, fp16::binary64).element(0) == value);
  CHECK(rounded(wide, fp16::binary32).element(0) == 1 + 0x1p-8 + 0x1p-23);
  CHECK(rounded(wide, fp16::binary16).element(0) == 1 + 0x1p-8);
  // Just above the tie between 1 and 1 + 2^-7, where binary32 is exact but bfloat16 has to look at it all.
  CHECK(rounded(wide, fp16::bfloat16).element(0) == 1 + 0x1p-7);
  wide.elements<double>()[0] = 1 + 0x1p-8;
  CHECK(rounded(wide, fp16::bfloat16).element(0) == 1);
  for (const fp16::Format format : {fp16::binary16, fp16::bfloat16, fp16::binary32}) {
    const Tensor narrow = rounded(wide, format);
    CHECK(rounded(narrow, fp16::binary64).element(0) == narrow.element(0));
    CHECK(rounded(narrow, fp16::binary32).element(0) == narrow.element(0));
  }
  CHECK_THROWS_WITH_AS(wide.to_floats(), "tensor: a binary64 tensor does not fit into floats",
                       std::invalid_argument);
}

TEST_CASE("tensor: a store rounds in the direction asked for") {
  const std::vector<float> values{1 + 0x1p-12f, -1 - 0x1p-12f, 1e6f};
  const auto stored = [&](fp16::Rounding direction) {
    const sim::ElementRounding rounding{direction, sim::RandomStream(1, "test")};
    Tensor tensor({3}, fp16::binary16);
    sim::store({&tensor, nullptr, &rounding}, 0, values);
    return std::vector<double>{tensor.element(0), tensor.element(1), tensor.element(2)};
  };
  constexpr double up = 1 + 0x1p-10;
  CHECK(stored(fp16::Rounding::toward_zero) == std::vector<double>{1, -1, 65504});
  CHECK(stored(fp16::Rounding::toward_positive) == std::vector<double>{up, -1, INFINITY});
  CHECK(stored(fp16::Rounding::toward_negative) == std::vector<double>{1, -up, 65504});
  CHECK(stored(fp16::Rounding::to_odd) == std::vector<double>{up, -up, 65504});
}

TEST_CASE("tensor: random bits belong to the element, however it is stored") {
  const std::vector<float> values(100, 1 + 0x1p-11f);
  const sim::ElementRounding rounding{fp16::Rounding::stochastic, sim::RandomStream(1, "test")};
  Tensor at_once({100}, fp16::binary16), in_pieces({100}, fp16::binary16);
  sim::store({&at_once, nullptr, &rounding}, 0, values);
  for (std::size_t i = 0; i < 100; i += 10)
    sim::store({&in_pieces, nullptr, &rounding}, i, std::span(values).subspan(i, 10));
  CHECK(at_once.to_floats() == in_pieces.to_floats());
  Tensor from_binary64({100}, fp16::binary16);
  sim::store({&from_binary64, nullptr, &rounding}, 0, std::vector<double>(values.begin(), values.end()));
  CHECK(at_once.to_floats() == from_binary64.to_floats());
  const auto ups = std::ranges::count(at_once.to_floats(), 1 + 0x1p-10f);
  CHECK(ups > 20);  // of 100 at even odds: fewer or more by chance once in 10^9
  CHECK(ups < 80);
}

TEST_CASE("tensor: parts on several threads cover all elements once, and their counts add up") {
  Tensor tensor({200'003}, fp16::binary16);
  fp16::RoundingCounts counts;
  sim::for_each_part({&tensor, &counts}, tensor.size(), 3, 1000,
                     [](const sim::RoundedOutput& out, std::size_t first, std::size_t last) {
                       const std::vector<float> values(last - first, 0x1p-30f);
                       sim::store(out, first, values);
                     });
  CHECK(counts.flushed == tensor.size());
  CHECK(std::ranges::all_of(tensor.elements<std::uint16_t>(), [](std::uint16_t code) { return code == 0; }));
}

TEST_CASE("tensor: shapes read as their extents") {
  CHECK(sim::to_string({2, 3, 5}) == "2x3x5");
  CHECK(sim::to_string({}) == "scalar");
  CHECK(sim::element_count({2, 3, 5}) == 30);
  CHECK(sim::element_count({}) == 1);
  CHECK(Tensor::zeros({2, 0}, fp16::binary32).empty());
}
