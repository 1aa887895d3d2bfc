#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "fp16/cuda/index.h"
#include "fp16/cuda/kernels.h"
#include "fp16/cuda/sweep.h"
#include "fp16/cuda/tensor_core.h"
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

const fp16::TensorCore& device_core() {
  return cuda::tensor_core_of(cuda::device().compute_capability);
}

bool emulated() {
  return cuda::device().name.starts_with("emulated");
}

/// All of a sweep's first shard, or what an emulator can do of it: windows that begin at equal distances.
std::vector<cuda::Range> parts_of(const cuda::Sweep& sweep) {
  constexpr std::uint64_t windows = 16, window = 256;
  const std::uint64_t inputs = sweep.inputs_of_shard();
  if (!emulated() || inputs <= windows * window) return {{.first = 0, .count = inputs}};
  std::vector<cuda::Range> parts;
  for (std::uint64_t i = 0; i < windows; ++i)
    parts.push_back(
        {.first = inputs / windows * i + cuda::mix(i) % (inputs / windows - window), .count = window});
  return parts;
}

/// The operands' codes side by side are the input's number.
fp16::OperandCodes operands_at(const fp16::Operation& operation, std::uint64_t input) {
  fp16::OperandCodes codes{};
  for (auto i = static_cast<std::size_t>(operation.arity); i-- > 0;) {
    codes[i] = input & ((std::uint64_t{1} << operation.operand_bits[i]) - 1);
    input >>= operation.operand_bits[i];
  }
  return codes;
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
    const std::vector<std::uint16_t> a = moderate_codes(count, 3);
    std::vector<std::uint16_t> b = moderate_codes(count, 4);
    for (std::uint16_t& code : b) code -= 6 << 10;  // so that no product overflows
    CHECK(cuda::sum_blocked_tree(a) == fp16::sum_blocked_tree<fp16::binary16, cuda::tree_width>(a).bits);
    std::vector<std::uint16_t> products(count);
    for (std::size_t i = 0; i < count; ++i) products[i] = fp16::multiply<fp16::binary16>(a[i], b[i]).bits;
    CHECK(cuda::dot_blocked_tree(a, b) ==
          fp16::sum_blocked_tree<fp16::binary16, cuda::tree_width>(products).bits);
  }
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
    for (const cuda::Range& part : parts_of(sweep)) {
      const cuda::SweepResult result = cuda::run(sweep, 0, part);
      CHECK(result.inputs == part.count);
      CHECK(result.mismatches == 0);
      CHECK(result.digest == cuda::run(sweep, 0, part).digest);
    }
  }
}

TEST_CASE("what the device answers to chosen inputs is what the sweep of each has compared") {
  if (skipped()) return;
  for (const cuda::Sweep& sweep : cuda::sweeps()) {
    const bool is_exact = sweep.operation->name.find("sqrt") == std::string::npos &&
                          sweep.operation->name.find("divide") == std::string::npos;
    if (sweep.pipe != cuda::Pipe::scalar || !sweep.exhausts_operands() || !is_exact) continue;
    CAPTURE(sweep.function);
    std::vector<std::uint64_t> inputs;  // more than a block, in no order
    for (std::uint64_t i = 0; i < 300; ++i) inputs.push_back(cuda::mix(i) % sweep.inputs());
    const std::vector<std::uint64_t> answers = cuda::answers_at(sweep, inputs);
    REQUIRE(answers.size() == inputs.size());
    int wrong = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      wrong += answers[i] != sweep.operation->apply(operands_at(*sweep.operation, inputs[i]));
    CHECK(wrong == 0);
  }
  const cuda::Sweep& first = cuda::sweeps().front();
  CHECK(cuda::answers_at(first, {}).empty());
  const std::vector<std::uint64_t> behind_the_last{first.inputs()}, too_many(cuda::most_answers + 1);
  CHECK_THROWS_WITH_AS(cuda::answers_at(first, behind_the_last), doctest::Contains("input "),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(cuda::answers_at(first, too_many), doctest::Contains("inputs at once"),
                       std::runtime_error);
}

TEST_CASE("parts of every sweep over more than 65536 inputs agree with the software on the device") {
  if (skipped()) return;
  constexpr std::uint64_t windows = 8, window = 128;
  for (const cuda::Sweep& sweep : cuda::sweeps()) {
    // What divides begins with an approximation, too.
    if (sweep.index_bits <= 16 || sweep.operation->name.find("divide") != std::string::npos) continue;
    CAPTURE(sweep.function);
    for (std::uint64_t i = 0; i < windows; ++i) {
      const auto shard = static_cast<std::uint32_t>(cuda::mix(i) % sweep.shards());
      const std::uint64_t first = cuda::mix(~i) % (sweep.inputs_of_shard() - window);
      const cuda::SweepResult result = cuda::run(sweep, shard, {.first = first, .count = window});
      CAPTURE(shard);
      CAPTURE(first);
      CHECK(result.mismatches == 0);
      CHECK(cuda::run(sweep, shard, {.first = first, .count = 50}).digest +
                cuda::run(sweep, shard, {.first = first + 50, .count = window - 50}).digest ==
            result.digest);
    }
  }
}

TEST_CASE("sums and products of all pairs agree with the software on the device") {
  if (skipped()) return;
  for (const cuda::Sweep& sweep : cuda::sweeps()) {
    if (sweep.function != "__hadd_rn" && sweep.function != "__hmul2_rn") continue;
    for (const cuda::Range& part : parts_of(sweep)) {
      const cuda::SweepResult result = cuda::run(sweep, 0, part);
      CHECK(result.inputs == part.count);
      CHECK(result.mismatches == 0);
      for (std::size_t i = 1; i < result.counterexamples.size(); ++i)
        CHECK(result.counterexamples[i - 1].index < result.counterexamples[i].index);
    }
  }
}
