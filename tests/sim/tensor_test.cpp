#include "sim/tensor.h"

#include <doctest/doctest.h>

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
