/// The rows that run on a GPU, without one: which kernel each has, and what happens to what kernels answer.

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "experiments/gpu/probes/fma_sweep.h"
#include "experiments/gpu/probes/sweep.h"
#include "experiments/gpu/validate_gpu/drivers.h"
#include "experiments/gpu/validate_gpu/rows.h"
#include "experiments/gpu/validate_gpu/tensor_cores.h"
#include "fp16/cuda/mix.h"
#include "tests/experiments/gpu/validate_gpu_invented_device.h"
#include "tests/temporary_directory.h"

namespace {

namespace cuda = fp16::cuda;
namespace probes = experiments::probes;
using namespace experiments::validate_gpu;
using test::InventedDevice;
using test::row_index;
using test::settings_for;
using test::some_rows;
using test::Swept;
using test::swept;
using test::TemporaryDirectory;

}  // namespace

TEST_CASE(
    "validate_gpu: every sweep, table and tensor-core family has one row, every row on a GPU one kernel") {
  std::map<std::string, int> rows_of_functions;
  std::set<std::string> driven;
  for (const Driver& driver : device_drivers()) {
    INFO(driver.rows.front());
    if (!driver.functions.empty()) CHECK(driver.functions.size() == driver.rows.size());
    for (const std::string& function : driver.functions) ++rows_of_functions[function];
    for (const std::string& id : driver.rows) CHECK(driven.insert(id).second);
    CHECK(driver.domain.shard_count >= 1);
    CHECK(driver.domain.inputs > 0);
  }
  for (const probes::Sweep& sweep : probes::sweeps()) {
    INFO(sweep.function);
    CHECK(rows_of_functions[std::string(sweep.function)] == 1);
  }
  for (const probes::TabulatedFunction& function : probes::tabulated_functions()) {
    INFO(function.function);
    CHECK(rows_of_functions[std::string(function.function)] == 1);
  }
  for (const Row& row : rows()) {
    INFO(row.id());
    if (row.is_on_gpu()) CHECK(row.driver.has_value());
    if (row.is_on_gpu()) CHECK(driven.contains(row.id()));
  }
  for (const char* id : {"mma_m16n8k16_f16_one_product, GPU", "hdiv, GPU packed", "float2half_rn, GPU packed",
                         "ldg, GPU", "ldg, GPU packed", "make_half2, GPU packed", "operator_less, GPU packed",
                         "atomicAdd_shared, GPU packed", "hcmadd, GPU"})
    CHECK_MESSAGE(driven.contains(id), id);
}

TEST_CASE("validate_gpu: a row's kernel computes the row's operation on the row's operands") {
  for (const Driver& driver : device_drivers()) {
    for (std::size_t i = 0; i < driver.functions.size(); ++i) {
      const auto sweep = std::ranges::find(probes::sweeps(), driver.functions[i], &probes::Sweep::function);
      if (sweep == probes::sweeps().end()) continue;
      const Row& row = rows()[row_index(driver.rows[i])];
      INFO(row.id(), " by ", sweep->function);
      CHECK(sweep->inputs() == driver.domain.inputs);
      CHECK(sweep->shards() == driver.domain.shard_count);
      CHECK(sweep->operation->arity == driver.domain.operand_count);
      CHECK(sweep->operation->operand_bits[0] == row.operation->operand.bits);
      CHECK(sweep->operation->result_bits == row.operation->result.bits);
      CHECK(sweep->exhausts_operands() == driver.domain.is_complete);
      CHECK((sweep->pipe == probes::Pipe::scalar) == (row.subject == Subject::gpu));
      if (row.is_packed()) {
        CHECK((sweep->pipe == probes::Pipe::mask) == (row.operation->lane == LaneResult::mask));
        CHECK((sweep->pipe == probes::Pipe::both) == (row.operation->lane == LaneResult::all));
      }
      if (row.operation->software == nullptr) continue;  // known from the kernel alone
      int differing = 0;
      for (std::uint64_t k = 0; k < 3000; ++k) {
        const auto random = [k](std::uint64_t stream) { return cuda::mix(3 * k + stream); };
        const auto cut = [&](std::uint64_t word, std::size_t operand) {
          const int bits = sweep->operation->operand_bits[operand];
          return bits == 0 ? 0 : word >> (64 - bits);
        };
        const Operands operands{.a = cut(random(1), 0), .b = cut(random(2), 1), .c = cut(random(3), 2)};
        const bool deviates = row.deviation != nullptr && row.deviation->applies(operands);
        const std::uint64_t expected = deviates ? row.deviation->result : row.operation->software(operands);
        differing += sweep->operation->apply({operands.a, operands.b, operands.c}) != expected;
      }
      CHECK(differing == 0);
    }
  }
}

TEST_CASE("validate_gpu: rows on a GPU take the shards of their kernels, fused ones together") {
  const TemporaryDirectory directory;
  InventedDevice device;
  const Swept result = swept(directory, settings_for(some_rows, device));
  const auto& [hadd, hfma, relu, hexp, software] = std::tie(
      result.outcomes[0], result.outcomes[1], result.outcomes[2], result.outcomes[3], result.outcomes[4]);
  CHECK(device.runs == 1 + 4 + 1);
  CHECK(hadd.shards_finished == 1);
  CHECK(hadd.inputs == std::uint64_t{1} << 32);
  CHECK(hadd.time_s == 0.25);
  CHECK(hfma.shards_finished == 4);
  CHECK(hfma.inputs == std::uint64_t{4} << 32);
  CHECK(relu.shards_finished == 4);
  CHECK(relu.time_s == 1.0);
  CHECK(hexp.inputs == 65536);
  CHECK(software.shards_finished == 1);
  const ShardFile shards = ShardFile::read(directory / "shards.bin", shard_lines(), ShardFile::Use::compare);
  CHECK(shards.finished(row_index("hfma, GPU")).size() == 4);
  CHECK(shards.finished(row_index("hfma, GPU packed")).empty());
  CHECK(shards.is_finished(row_index("hfma, GPU"), 0x3C01));  // a border first

  // Nothing is left to do, but what was not chosen before is.
  CHECK(swept(directory, settings_for(some_rows, device)).bytes == result.bytes);
  CHECK(device.runs == 6);
  swept(directory, settings_for({"hfma, GPU packed"}, device));
  CHECK(device.runs == 10);
}

TEST_CASE("validate_gpu: what does not run says why") {
  const TemporaryDirectory directory;
  InventedDevice device;
  device.driver_of("hadd, GPU").obstacle = [] { return std::string("needs another device"); };
  SweepSettings settings = settings_for({"hadd, GPU", "hsub, GPU", "hadd, software half"}, device);
  settings.on_cpu = false;
  std::vector<RowOutcome> outcomes = swept(directory, settings).outcomes;
  CHECK(outcomes[0].obstacle == "needs another device");
  CHECK(outcomes[1].obstacle.empty());
  CHECK(outcomes[2].obstacle == "needs --device cpu");
  settings.on_gpu = false;
  outcomes = swept(directory, settings).outcomes;
  CHECK(outcomes[1].obstacle == "needs a GPU");
  CHECK(outcomes[1].inputs == 0);
}

TEST_CASE("validate_gpu: every row gets its first shard before another gets its second, tensor cores last") {
  const TemporaryDirectory directory;
  InventedDevice device;
  std::vector<std::string> order;
  for (Driver& driver : device.drivers) {
    driver.run = [&order, id = driver.rows.front(), run = driver.run](std::uint32_t shard) {
      order.push_back(id);
      return run(shard);
    };
  }
  const std::string tensor = "mma_m16n8k8_f16_specials, GPU", product = "mma_m16n8k8_f16_one_product, GPU";
  SweepSettings settings = settings_for({"hfma, GPU", "hadd, GPU", "hexp, GPU", tensor, product}, device);
  settings.gpu_samples = std::uint64_t{1} << 37;
  swept(directory, settings);
  REQUIRE(order.size() == 3 + 32 + 2);
  const std::string fused = device.driver_of("hfma, GPU").rows.front();
  CHECK(std::vector(order.begin(), order.begin() + 7) == std::vector{std::string("hexp, GPU"),
                                                                     std::string("hadd, GPU"), fused, tensor,
                                                                     product, fused, product});
}

TEST_CASE("validate_gpu: what kernels find is added up, shown and judged by what is promised") {
  const TemporaryDirectory directory;
  InventedDevice device;
  const auto answers_with = [&](const std::string& id, const ShardResult& result, const std::string& kind) {
    device.driver_of(id).run = [=](std::uint32_t) {
      return DeviceAnswer{
          .time_s = 1, .rows = {{.result = result, .examples = {{.kind = kind, .bits = {}, .values = {}}}}}};
    };
  };
  answers_with("hadd, GPU", {.digest = 1, .other_nans = 5}, "NaN");
  answers_with("hmax, GPU", {.digest = 2, .other_nans = 7}, "NaN");
  answers_with("hsub, GPU", {.digest = 3, .mismatches = std::uint64_t{1} << 40}, "value");
  answers_with("hexp, GPU", {.digest = 4, .misrounded = 13}, "rounding");
  int calls = 0;
  device.driver_of("hmul, GPU").run = [&](std::uint32_t) {
    return DeviceAnswer{.time_s = 1,
                        .rows = {{.result = {.digest = static_cast<std::uint64_t>(++calls), .other_nans = 1},
                                  .examples = {}}}};
  };
  const std::vector<RowOutcome> outcomes =
      swept(directory,
            settings_for({"hadd, GPU", "hmax, GPU", "hsub, GPU", "hexp, GPU", "hmul, GPU"}, device))
          .outcomes;
  CHECK(outcomes[0].mismatches == 0);  // PTX leaves the NaN open
  CHECK(outcomes[0].other_nans == 5);
  CHECK(outcomes[0].examples.at(0).kind == "NaN");
  CHECK(outcomes[1].mismatches == 7);  // cuda_fp16.h says that it is the canonical one
  CHECK(outcomes[2].mismatches == std::uint64_t{1} << 40);
  CHECK(outcomes[3].mismatches == 0);
  CHECK(outcomes[3].misrounded == 13);
  CHECK(outcomes[4].mismatches == 1);  // another digest when it was asked again
  CHECK(outcomes[4].examples.at(0).kind == "repetition");
}

TEST_CASE("validate_gpu: a wrong value behind many NaNs of other bits is found and shown first") {
  const auto example = [](const std::string& kind) {
    return Example{.kind = kind, .bits = {}, .values = {}};
  };
  for (const std::uint64_t wrong : {100U, 131U, 1123U}) {
    // Every input from 100 to 1123 gives another NaN, but one.
    std::uint64_t asked = 0;
    const auto ask = [&](probes::Range part) {
      asked += part.count;
      RowAnswer answer;
      for (std::uint64_t i = part.first; i < part.first + part.count; ++i) {
        ++(i == wrong ? answer.result.mismatches : answer.result.other_nans);
        if (answer.examples.size() < 8)
          answer.examples.push_back(example(i == wrong ? "value, variant 2" : "NaN"));
      }
      return answer;
    };
    const probes::Range all{.first = 100, .count = 1024};
    RowAnswer row = ask(all);
    const std::uint64_t before = asked;
    prepend_value_examples(row, all, ask);
    REQUIRE(!row.examples.empty());
    CHECK(row.examples.front().kind == "value, variant 2");
    CHECK(std::ranges::count_if(row.examples, [](const Example& each) { return each.kind != "NaN"; }) == 1);
    CHECK(asked - before <= 2 * 1024);
  }
  RowAnswer nans{.result = {.other_nans = 1}, .examples = {example("NaN")}};
  prepend_value_examples(nans, {.first = 0, .count = 8}, [](probes::Range) -> RowAnswer { throw 0; });
  CHECK(nans.examples.size() == 1);
}

TEST_CASE("validate_gpu: tensor-core instructions are compared where they are tried with the same products") {
  const auto row_called = [](const std::string& operation) { return row_index(operation + ", GPU"); };
  ShardFile shards(shard_lines());
  const auto finish = [&](const std::string& operation, std::uint32_t shard, std::uint64_t digest) {
    shards.set(row_called(operation), shard, {.digest = digest});
  };
  finish("mma_m16n8k16_f32_random", 0, 7);
  finish("mma_m16n8k16_f32_random", 1, 8);
  CHECK(compare_instructions(shards).shards_in_both == 0);
  finish("wmma_m16n16k16_f32_random", 0, 7);
  finish("wgmma_m64n8k16_f32_random", 1, 8);
  // Another depth, another accumulator, and a family that looks at tiles are not compared.
  finish("mma_m16n8k8_f32_random", 0, 9);
  finish("wmma_m16n16k16_f16_random", 0, 9);
  finish("mma_m16n8k16_f32_position", 0, 1);
  finish("wmma_m16n16k16_f32_position", 0, 2);
  CHECK(compare_instructions(shards).shards_in_both == 2);
  CHECK(compare_instructions(shards).shards_differing == 0);
  finish("wgmma_m64n8k16_f32_random", 0, 6);
  const ShardComparison found = compare_instructions(shards);
  CHECK(found.shards_in_both == 3);
  CHECK(found.shards_differing == 1);
  CHECK(found.first_difference == "wgmma_m64n8k16_f32_random, GPU, shard 0");
}
