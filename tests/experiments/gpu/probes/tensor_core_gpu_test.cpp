#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/gpu/probes/sweep.h"
#include "experiments/gpu/probes/tensor_core.h"
#include "fp16/cuda/device.h"
#include "fp16/mma.h"

namespace cuda = fp16::cuda;
namespace probes = experiments::probes;

namespace {

using probes::DotFamily;
using probes::InputFamily;
using probes::TensorCoreInstruction;
using probes::TensorCoreResult;

bool skipped() {
  if (cuda::available()) return false;
  MESSAGE("skipped: " << cuda::unavailable_reason());
  return true;
}

bool skipped(const TensorCoreInstruction& instruction) {
  const std::string reason = probes::unavailable_reason(instruction);
  if (!reason.empty()) MESSAGE("skipped " << instruction.name << ": " << reason);
  return !reason.empty();
}

const InputFamily& family(DotFamily wanted) {
  return *std::ranges::find(probes::input_families(), wanted, &InputFamily::family);
}

const fp16::TensorCore& device_core() {
  return cuda::tensor_core_of(cuda::device().compute_capability);
}

/// A few numbers from the midst of a family, neither end of them a multiple of anything.
probes::DotRange some_numbers(const TensorCoreInstruction& instruction, const InputFamily& inputs) {
  const std::uint64_t all = inputs.inputs(instruction);
  if (inputs.family == DotFamily::open_questions) return {.first = 0, .count = all};
  // So that every distribution of the random numbers occurs.
  const std::uint64_t count = inputs.family == DotFamily::random     ? 16 * 32 + 3
                              : inputs.family == DotFamily::position ? 5
                                                                     : 77;
  return {.first = all / 5 * 2 + 13, .count = count};
}

}  // namespace

TEST_CASE("tensor-core instructions compute as the model of the device, and agree with themselves") {
  if (skipped()) return;
  for (const TensorCoreInstruction& instruction : probes::tensor_core_instructions()) {
    if (skipped(instruction)) continue;
    for (const InputFamily& inputs : probes::input_families()) {
      // Positions take a tile's worth of products for each number, and do not depend on the accumulator.
      if (inputs.family == DotFamily::position &&
          instruction.accumulator != probes::AccumulatorFormat::binary32)
        continue;
      CAPTURE(instruction.name);
      CAPTURE(probes::name_of(instruction.accumulator));
      CAPTURE(inputs.name);
      const probes::DotRange numbers = some_numbers(instruction, inputs);
      const TensorCoreResult result = probes::run(instruction, inputs, numbers, device_core());
      CHECK(result.inputs == numbers.count);
      CHECK(result.mismatches == 0);
      CHECK(result.nan_mismatches == 0);
      CHECK(result.counterexamples.empty());
    }
  }
}

TEST_CASE("equal dot products have equal digests, whatever the instruction, and digests of parts add up") {
  if (skipped()) return;
  for (const DotFamily wanted : {DotFamily::random, DotFamily::one_product, DotFamily::negation}) {
    for (const auto accumulator :
         {probes::AccumulatorFormat::binary32, probes::AccumulatorFormat::binary16}) {
      const std::uint64_t first = 0x3c00'3c00'0101, count = 300;
      std::uint64_t expected = 0;
      for (const TensorCoreInstruction& instruction : probes::tensor_core_instructions()) {
        if (instruction.depth != 16 || instruction.accumulator != accumulator || skipped(instruction))
          continue;
        CAPTURE(instruction.name);
        const auto digest = [&](std::uint64_t from, std::uint64_t numbers) {
          return probes::run(instruction, family(wanted), {.first = from, .count = numbers}, device_core())
              .digest;
        };
        const std::uint64_t whole = digest(first, count);
        CHECK(digest(first, 101) + digest(first + 101, count - 101) == whole);
        if (expected == 0) expected = whole;
        CHECK(whole == expected);
      }
    }
  }
}

TEST_CASE("a tensor core that is not the model's shows, with its operands") {
  if (skipped()) return;
  fp16::TensorCore wrong = device_core();
  wrong.fraction_bits -= 2;
  for (const TensorCoreInstruction& instruction : probes::tensor_core_instructions()) {
    if (skipped(instruction)) continue;
    CAPTURE(instruction.name);
    const probes::DotRange numbers{.first = 4 * 32, .count = 400};
    std::vector<std::uint64_t> differing;
    for (std::uint64_t number = numbers.first; number < numbers.first + numbers.count; ++number) {
      const probes::DotProduct product = probes::dot_product(instruction, DotFamily::random, number);
      if (probes::model_result(wrong, instruction, product) !=
          probes::model_result(device_core(), instruction, product))
        differing.push_back(number);
    }
    const TensorCoreResult result = probes::run(instruction, family(DotFamily::random), numbers, wrong);
    CHECK(result.mismatches == differing.size());
    REQUIRE(differing.size() > probes::max_counterexamples);
    REQUIRE(result.counterexamples.size() == probes::max_counterexamples);
    CHECK(std::ranges::equal(result.counterexamples,
                             differing | std::views::take(probes::max_counterexamples), {},
                             &probes::DotCounterexample::number));
    for (const probes::DotCounterexample& example : result.counterexamples) {
      CHECK(example.expected == probes::model_result(wrong, instruction, example.product));
      CHECK(example.found == probes::model_result(device_core(), instruction, example.product));
      CHECK(example.expected != example.found);
    }
  }
}

TEST_CASE("the last of all random numbers are among those compared") {
  if (skipped()) return;
  const probes::DotRange last{.first = ~std::uint64_t{0} - 70, .count = 70};
  fp16::TensorCore wrong = device_core();
  wrong.fraction_bits = 0;
  for (const TensorCoreInstruction& instruction : probes::tensor_core_instructions()) {
    if (skipped(instruction)) continue;
    CAPTURE(instruction.name);
    CHECK(probes::run(instruction, family(DotFamily::random), last, wrong).mismatches > 0);
    CHECK(probes::run(instruction, family(DotFamily::random), last, device_core()).mismatches == 0);
  }
}

TEST_CASE("numbers that a family does not have are refused") {
  if (skipped()) return;
  const TensorCoreInstruction& instruction = probes::tensor_core_instructions().front();
  const InputFamily& structure = family(DotFamily::structure);
  const std::uint64_t all = structure.inputs(instruction);
  CHECK(probes::run(instruction, structure, {.first = all, .count = 0}, device_core()).inputs == 0);
  CHECK_THROWS_AS(probes::run(instruction, structure, {.first = all - 1, .count = 2}, device_core()),
                  std::invalid_argument);

  constexpr std::uint64_t all_random = ~std::uint64_t{0};
  CHECK_THROWS_AS(
      probes::run(instruction, family(DotFamily::random), {.first = all_random, .count = 1}, device_core()),
      std::invalid_argument);
  CHECK_THROWS_AS(
      probes::run(instruction, family(DotFamily::random), {.first = 100, .count = all_random}, device_core()),
      std::invalid_argument);
}
