#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/gpu/probes/sweep.h"
#include "fp16/cuda/device.h"
#include "fp16/cuda/mix.h"

namespace cuda = fp16::cuda;
namespace probes = experiments::probes;

namespace {

bool skipped() {
  if (cuda::available()) return false;
  MESSAGE("skipped: " << cuda::unavailable_reason());
  return true;
}

bool emulated() {
  return cuda::device().name.starts_with("emulated");
}

/// All of a sweep's first shard, or what an emulator can do of it: windows that begin at equal distances.
std::vector<probes::Range> parts_of(const probes::Sweep& sweep) {
  constexpr std::uint64_t windows = 16, window = 256;
  const std::uint64_t inputs = sweep.inputs_of_shard();
  if (!emulated() || inputs <= windows * window) return {{.first = 0, .count = inputs}};
  std::vector<probes::Range> parts;
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

}  // namespace

TEST_CASE("functions of one half agree with the software on the device") {
  if (skipped()) return;
  for (const probes::Sweep& sweep : probes::sweeps()) {
    // MUFU's approximations are for a measurement to judge.
    if (sweep.index_bits > 16 || sweep.function.find("sqrt") != std::string::npos) continue;
    CAPTURE(sweep.function);
    for (const probes::Range& part : parts_of(sweep)) {
      const probes::SweepResult result = probes::run(sweep, 0, part);
      CHECK(result.inputs == part.count);
      CHECK(result.mismatches == 0);
      CHECK(result.digest == probes::run(sweep, 0, part).digest);
    }
  }
}

TEST_CASE("what the device answers to chosen inputs is what the sweep of each has compared") {
  if (skipped()) return;
  for (const probes::Sweep& sweep : probes::sweeps()) {
    const bool is_exact = sweep.operation->name.find("sqrt") == std::string::npos &&
                          sweep.operation->name.find("divide") == std::string::npos;
    if (sweep.pipe != probes::Pipe::scalar || !sweep.exhausts_operands() || !is_exact) continue;
    CAPTURE(sweep.function);
    std::vector<std::uint64_t> inputs;  // more than a block, in no order
    for (std::uint64_t i = 0; i < 300; ++i) inputs.push_back(cuda::mix(i) % sweep.inputs());
    const std::vector<std::uint64_t> answers = probes::answers_at(sweep, inputs);
    REQUIRE(answers.size() == inputs.size());
    int wrong = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      wrong += answers[i] != sweep.operation->apply(operands_at(*sweep.operation, inputs[i]));
    CHECK(wrong == 0);
  }
  const probes::Sweep& first = probes::sweeps().front();
  CHECK(probes::answers_at(first, {}).empty());
  const std::vector<std::uint64_t> behind_the_last{first.inputs()}, too_many(probes::most_answers + 1);
  CHECK_THROWS_WITH_AS(probes::answers_at(first, behind_the_last), doctest::Contains("input "),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(probes::answers_at(first, too_many), doctest::Contains("inputs at once"),
                       std::runtime_error);
}

TEST_CASE("parts of every sweep over more than 65536 inputs agree with the software on the device") {
  if (skipped()) return;
  constexpr std::uint64_t windows = 8, window = 128;
  for (const probes::Sweep& sweep : probes::sweeps()) {
    // What divides begins with an approximation, too.
    if (sweep.index_bits <= 16 || sweep.operation->name.find("divide") != std::string::npos) continue;
    CAPTURE(sweep.function);
    for (std::uint64_t i = 0; i < windows; ++i) {
      const auto shard = static_cast<std::uint32_t>(cuda::mix(i) % sweep.shards());
      const std::uint64_t first = cuda::mix(~i) % (sweep.inputs_of_shard() - window);
      const probes::SweepResult result = probes::run(sweep, shard, {.first = first, .count = window});
      CAPTURE(shard);
      CAPTURE(first);
      CHECK(result.mismatches == 0);
      CHECK(probes::run(sweep, shard, {.first = first, .count = 50}).digest +
                probes::run(sweep, shard, {.first = first + 50, .count = window - 50}).digest ==
            result.digest);
    }
  }
}

TEST_CASE("sums and products of all pairs agree with the software on the device") {
  if (skipped()) return;
  for (const probes::Sweep& sweep : probes::sweeps()) {
    if (sweep.function != "__hadd_rn" && sweep.function != "__hmul2_rn") continue;
    for (const probes::Range& part : parts_of(sweep)) {
      const probes::SweepResult result = probes::run(sweep, 0, part);
      CHECK(result.inputs == part.count);
      CHECK(result.mismatches == 0);
      for (std::size_t i = 1; i < result.counterexamples.size(); ++i)
        CHECK(result.counterexamples[i - 1].index < result.counterexamples[i].index);
    }
  }
}
