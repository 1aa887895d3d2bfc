#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fp16/cuda/index.h"
#include "fp16/cuda/kernels.h"
#include "fp16/cuda/sweep.h"
#include "fp16/half.h"
#include "fp16/mma.h"
#include "fp16/sum.h"

namespace cuda = fp16::cuda;

namespace {

/// Finite halves of 2^-8 ... 2^7 in size, of both signs.
std::vector<std::uint16_t> moderate_codes(std::size_t count, std::uint64_t seed) {
  std::vector<std::uint16_t> codes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t random = cuda::mix(seed * 0x9e3779b97f4a7c15 + i);
    codes[i] = static_cast<std::uint16_t>((random & 0x83ff) | (7 + (random >> 32) % 16) << 10);
  }
  return codes;
}

bool skipped() {
  if (cuda::available()) return false;
  MESSAGE("skipped: " << cuda::unavailable_reason());
  return true;
}

/// The model of the device, by its compute capability.
const fp16::TensorCore& device_core() {
  const int capability = cuda::device().compute_capability;
  return capability >= 100  ? fp16::blackwell
         : capability >= 90 ? fp16::hopper
         : capability == 89 ? fp16::ada
         : capability >= 80 ? fp16::ampere
                            : fp16::turing;
}

std::uint32_t code_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
std::uint16_t code_of(std::uint16_t code) {
  return code;
}

template <const fp16::Format& Accumulator, typename Value>
void check_mma(int depth, const std::vector<Value>& c) {
  const std::size_t tiles = c.size() / 128, k_count = static_cast<std::size_t>(depth);
  const std::vector<std::uint16_t> a = moderate_codes(tiles * 16 * k_count, 1);
  const std::vector<std::uint16_t> b = moderate_codes(tiles * 8 * k_count, 2);
  std::vector<Value> d(c.size());
  cuda::mma(cuda::MmaTiles<Value>{.depth = depth, .a = a, .b = b, .c = c, .d = d});
  int wrong = 0;
  for (std::size_t at = 0; at < d.size(); ++at) {
    const std::size_t tile = at / 128, row = at / 8 % 16, column = at % 8;
    std::vector<std::uint16_t> b_column(k_count);
    for (std::size_t k = 0; k < k_count; ++k) b_column[k] = b[(tile * k_count + k) * 8 + column];
    const auto a_row = std::span(a).subspan((tile * 16 + row) * k_count, k_count);
    wrong += code_of(d[at]) != fp16::mma_dot<Accumulator>(device_core(), a_row, b_column, code_of(c[at]));
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("sums and dot products on the device are the stated trees") {
  if (skipped()) return;
  for (const std::size_t count : {1, 2, 3, 255, 256, 257, 1000, 65537, 100000}) {
    const std::vector<std::uint16_t> a = moderate_codes(count, 3), b = moderate_codes(count, 4);
    CHECK(cuda::sum_blocked_tree(a) == fp16::sum_blocked_tree<fp16::binary16, cuda::tree_width>(a).bits);
    std::vector<std::uint16_t> products(count);
    for (std::size_t i = 0; i < count; ++i) products[i] = fp16::multiply<fp16::binary16>(a[i], b[i]).bits;
    CHECK(cuda::dot_blocked_tree(a, b) ==
          fp16::sum_blocked_tree<fp16::binary16, cuda::tree_width>(products).bits);
  }
}

TEST_CASE("the matrix product on the device is a chain of fused multiply-adds") {
  if (skipped()) return;
  const std::size_t rows = 37, columns = 51, depth = 203;
  const std::vector<std::uint16_t> a = moderate_codes(rows * depth, 5),
                                   b = moderate_codes(depth * columns, 6);
  std::vector<std::uint16_t> c(rows * columns);
  cuda::gemm_fma_chain({.rows = rows, .columns = columns, .depth = depth, .a = a, .b = b, .c = c});
  int wrong = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      std::uint16_t sum = 0;
      for (std::size_t k = 0; k < depth; ++k)
        sum = fp16::fma<fp16::binary16>(a[i * depth + k], b[k * columns + j], sum).bits;
      wrong += c[i * columns + j] != sum;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("tensor-core instructions compute as the model of the device") {
  if (skipped()) return;
  const std::vector<std::uint16_t> halves = moderate_codes(128 * 100, 7);
  std::vector<float> floats;
  for (const std::uint16_t code : halves) floats.push_back(fp16::half_bits_to_float(code) * 1.0001f);
  check_mma<fp16::binary32>(8, floats);
  check_mma<fp16::binary16>(8, halves);
  if (cuda::device().compute_capability < 80) return;
  check_mma<fp16::binary32>(16, floats);
  check_mma<fp16::binary16>(16, halves);
}

TEST_CASE("functions of one half agree with the software on the device") {
  if (skipped()) return;
  for (const cuda::Sweep& sweep : cuda::sweeps()) {
    // MUFU's approximations are for a measurement to judge.
    if (sweep.index_bits > 16 || sweep.function.find("sqrt") != std::string::npos) continue;
    CAPTURE(sweep.function);
    const cuda::SweepResult result = cuda::run(sweep, 0);
    CHECK(result.inputs == sweep.inputs());
    CHECK(result.mismatches == 0);
    CHECK(result.digest == cuda::run(sweep, 0).digest);
  }
}

TEST_CASE("sums and products of all pairs agree with the software on the device") {
  if (skipped()) return;
  for (const cuda::Sweep& sweep : cuda::sweeps()) {
    if (sweep.function != "__hadd_rn" && sweep.function != "__hmul2_rn") continue;
    const cuda::SweepResult result = cuda::run(sweep, 0);
    CHECK(result.inputs == std::uint64_t{1} << 32);
    CHECK(result.mismatches == 0);
    for (std::size_t i = 1; i < result.counterexamples.size(); ++i)
      CHECK(result.counterexamples[i - 1].index < result.counterexamples[i].index);
  }
}
