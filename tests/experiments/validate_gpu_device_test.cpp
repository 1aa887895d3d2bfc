/// The rows that run on a GPU, without one: which kernel each has, and what happens to what kernels answer.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "experiments/common/interrupt.h"
#include "experiments/validate_gpu/driver.h"
#include "experiments/validate_gpu/findings.h"
#include "experiments/validate_gpu/functions.h"
#include "experiments/validate_gpu/instruction_agreement.h"
#include "experiments/validate_gpu/nan_census.h"
#include "experiments/validate_gpu/rows.h"
#include "experiments/validate_gpu/sweep.h"
#include "experiments/validate_gpu/swept_answers.h"
#include "fp16/cuda/fma_sweep.h"
#include "fp16/cuda/index.h"
#include "fp16/cuda/sweep.h"
#include "fp16/cuda/tensor_core.h"
#include "tests/experiments/validate_gpu_rows.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"

namespace {

namespace cuda = fp16::cuda;
using namespace experiments::validate_gpu;
using experiments::Interrupted;
using test::row_index;
using test::TemporaryDirectory;

/// Answers that depend on row and shard alone.
DeviceAnswer invented_answer(const Driver& driver, std::uint32_t shard) {
  DeviceAnswer answer{.time_s = 0.25, .rows = {}};
  for (const std::string& id : driver.rows)
    answer.rows.push_back(
        {.result = {.digest = cuda::mix(std::hash<std::string>{}(id) + shard)}, .examples = {}});
  return answer;
}

/// The program's drivers, with kernels that invent answers and count their runs.
struct InventedDevice {
  std::vector<Driver> drivers = device_drivers();
  int runs = 0;

  InventedDevice() {
    for (Driver& driver : drivers) {
      driver.run = [this, id = driver.rows.front(), copy = driver](std::uint32_t shard) {
        ++runs;
        return invented_answer(copy, shard);
      };
      driver.obstacle = [] { return std::string(); };
      driver.answers = {};
    }
  }
  InventedDevice(const InventedDevice&) = delete;

  Driver& driver_of(const std::string& id) { return drivers.at(rows().at(row_index(id)).driver.value()); }
};

struct Swept {
  std::vector<RowOutcome> outcomes;
  std::string bytes;  ///< of the shard file
};

SweepSettings settings_for(const std::vector<std::string>& ids, const InventedDevice& device) {
  SweepSettings settings{.rows = {},
                         .file = {},
                         .on_gpu = true,
                         .gpu_samples = std::uint64_t{1} << 34,
                         .drivers = &device.drivers};
  for (const std::string& id : ids) settings.rows.push_back(row_index(id));
  return settings;
}

/// Goes on with the shards that the directory holds.
Swept swept(const TemporaryDirectory& directory, SweepSettings settings) {
  const std::string file = directory / "shards.bin";
  settings.file = file;
  std::ostringstream warnings;
  sim::RunRecord record(directory / "run");
  experiments::Run run(record, {.threads = 2, .terminal = nullptr, .warnings = &warnings});
  ShardFile shards = std::filesystem::exists(file)
                         ? ShardFile::read(file, shard_lines(), ShardFile::Use::go_on)
                         : ShardFile(shard_lines());
  Swept result{.outcomes = sweep(settings, shards, run), .bytes = {}};
  if (std::filesystem::exists(file)) result.bytes = test::content_of(file);
  return result;
}

const std::vector<std::string> some_rows{"hadd, GPU", "hfma, GPU", "hfma_relu, GPU packed", "hexp, GPU",
                                         "hadd, software half"};

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
  for (const cuda::Sweep& sweep : cuda::sweeps()) {
    INFO(sweep.function);
    CHECK(rows_of_functions[std::string(sweep.function)] == 1);
  }
  for (const cuda::TabulatedFunction& function : cuda::tabulated_functions()) {
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
      const auto sweep = std::ranges::find(cuda::sweeps(), driver.functions[i], &cuda::Sweep::function);
      if (sweep == cuda::sweeps().end()) continue;
      const Row& row = rows()[row_index(driver.rows[i])];
      INFO(row.id(), " by ", sweep->function);
      CHECK(sweep->inputs() == driver.domain.inputs);
      CHECK(sweep->shards() == driver.domain.shard_count);
      CHECK(sweep->operation->arity == driver.domain.operand_count);
      CHECK(sweep->operation->operand_bits[0] == row.operation->operand.bits);
      CHECK(sweep->operation->result_bits == row.operation->result.bits);
      CHECK(sweep->exhausts_operands() == driver.domain.is_complete);
      CHECK((sweep->pipe == cuda::Pipe::scalar) == (row.subject == Subject::gpu));
      if (row.is_packed()) {
        CHECK((sweep->pipe == cuda::Pipe::mask) == (row.operation->lane == LaneResult::mask));
        CHECK((sweep->pipe == cuda::Pipe::both) == (row.operation->lane == LaneResult::all));
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

TEST_CASE("validate_gpu: where the device fails at a row, the others go on, unless it fails at all of them") {
  const auto fails = [](std::uint32_t) -> DeviceAnswer {
    throw std::runtime_error("cudaMemcpy: an illegal memory access was encountered");
  };
  const TemporaryDirectory directory;
  InventedDevice device;
  device.driver_of("hsub, GPU").run = fails;
  const std::vector<RowOutcome> outcomes =
      swept(directory, settings_for({"hsub, GPU", "hadd, GPU", "hfma, GPU"}, device)).outcomes;
  CHECK(outcomes[0].failure == "hsub, GPU, shard 0: cudaMemcpy: an illegal memory access was encountered");
  CHECK(outcomes[0].shards_finished == 0);
  CHECK(outcomes[1].failure.empty());
  CHECK(outcomes[1].shards_finished == 1);
  CHECK(outcomes[2].shards_finished == 4);

  const TemporaryDirectory other;
  for (Driver& driver : device.drivers) driver.run = fails;
  const std::vector<RowOutcome> lost =
      swept(other, settings_for({"hsub, GPU", "hadd, GPU", "hmul, GPU", "hdiv, GPU"}, device)).outcomes;
  CHECK(std::ranges::count_if(lost, [](const RowOutcome& each) { return !each.failure.empty(); }) == 3);

  // The first failure is the first in time, not in the order of the rows.
  const TemporaryDirectory third;
  std::vector<Finding> late;
  for (const RowOutcome& outcome : swept(third, settings_for({"hadd, GPU", "hexp, GPU"}, device)).outcomes)
    late.push_back(finding_of(outcome));
  CHECK(first_failure(late).starts_with("hexp, GPU, shard 0: "));

  const TemporaryDirectory written;
  std::vector<Finding> findings;
  for (const RowOutcome& outcome : outcomes) findings.push_back(finding_of(outcome));
  CHECK(first_failure(findings) == outcomes[0].failure);
  {
    sim::RunRecord record(written / "run");
    write_tables(record, findings);
    write_summary(record, findings);
    write_verdict(record, findings);
    CHECK(record.verdict().find("THE DEVICE FAILED at 1 row: " + outcomes[0].failure + ".") !=
          std::string::npos);
    CHECK(record.verdict().find("equal, DEVICE FAILED") != std::string::npos);
    record.commit({});
  }
  CHECK(test::content_of(written / "run/verdicts.csv").find("\"not begun, DEVICE FAILED") !=
        std::string::npos);
  CHECK(nlohmann::json::parse(test::content_of(written / "run/summary.json")).at("rows_failed") == 1);
}

TEST_CASE("validate_gpu: a device that fails when examples are asked for again leaves what it said before") {
  const TemporaryDirectory directory;
  InventedDevice device;
  int calls = 0;
  device.driver_of("hsub, GPU").run = [&](std::uint32_t) -> DeviceAnswer {
    if (++calls > 1) throw std::runtime_error("cudaMemcpy: unspecified launch failure");
    return {.time_s = 1,
            .rows = {{.result = {.digest = 1, .mismatches = 3},
                      .examples = {{.kind = "value", .bits = {}, .values = {}}}}}};
  };
  const RowOutcome outcome = swept(directory, settings_for({"hsub, GPU"}, device)).outcomes[0];
  CHECK(outcome.mismatches == 3);
  CHECK(outcome.failure == "hsub, GPU, shard 0: cudaMemcpy: unspecified launch failure");
  CHECK(outcome.examples.size() == 1);
}

TEST_CASE("validate_gpu: a run that failed or was interrupted goes on, and ends with the same bytes") {
  const TemporaryDirectory whole, parts;
  InventedDevice device;
  const Swept expected = swept(whole, settings_for(some_rows, device));
  int left = 0;
  for (Driver& driver : device.drivers) {
    driver.run = [&left, run = driver.run](std::uint32_t shard) {
      if (left-- <= 0) throw std::runtime_error("cudaMemcpy: an illegal memory access was encountered");
      return run(shard);
    };
  }
  const int needed = device.runs;
  for (int attempt = 1; attempt < needed; ++attempt) {
    left = 1;
    const std::vector<RowOutcome> outcomes = swept(parts, settings_for(some_rows, device)).outcomes;
    CHECK(std::ranges::any_of(outcomes, [](const RowOutcome& each) { return !each.failure.empty(); }));
    CHECK(device.runs == needed + attempt);
  }
  device.driver_of("hfma, GPU").run = [](std::uint32_t) -> DeviceAnswer { throw Interrupted("by hand"); };
  CHECK_THROWS_WITH_AS(swept(parts, settings_for(some_rows, device)),
                       doctest::Contains("the finished shards are kept in"), Interrupted);
  InventedDevice sound;
  const Swept result = swept(parts, settings_for(some_rows, sound));
  CHECK(sound.runs == 1);
  CHECK(result.bytes == expected.bytes);
  for (std::size_t i = 0; i < some_rows.size(); ++i)
    CHECK(result.outcomes[i].inputs == expected.outcomes[i].inputs);
}

TEST_CASE("validate_gpu: after the budget no shard is begun, and the row says how many are finished") {
  const TemporaryDirectory directory;
  InventedDevice device;
  SweepSettings settings = settings_for({"hfma, GPU", "hadd, GPU"}, device);
  settings.all_triples = true;
  settings.budget_s = 0.0;
  CHECK(swept(directory, settings).outcomes[0].shards_finished == 0);
  CHECK(device.runs == 0);

  Driver& fused = device.driver_of("hfma, GPU");
  fused.run = [run = fused.run](std::uint32_t shard) {
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    return run(shard);
  };
  settings.budget_s = 0.3;
  const auto start = std::chrono::steady_clock::now();
  const RowOutcome first = swept(directory, settings).outcomes[0];
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
  CHECK(first.shards_wanted == 65536);
  CHECK(first.shards_finished >= 1);
  CHECK(first.shards_finished <= 8);
  CHECK(first.inputs == std::uint64_t{first.shards_finished} << 32);
  const std::vector<RowOutcome> outcomes = swept(directory, settings).outcomes;
  CHECK(outcomes[0].shards_finished > first.shards_finished);
  CHECK(outcomes[1].shards_finished == 1);  // the shorter one came first

  const TemporaryDirectory written;
  {
    sim::RunRecord record(written / "run");
    write_tables(record, {finding_of(outcomes[0]), finding_of(outcomes[1])});
    write_verdict(record, {finding_of(outcomes[0]), finding_of(outcomes[1])});
    CHECK(record.verdict().find(std::to_string(outcomes[0].shards_finished) + " of 65,536 shards") !=
          std::string::npos);
    CHECK(record.verdict().find("the next run goes on") != std::string::npos);
    record.commit({});
  }
  CHECK(test::content_of(written / "run/verdicts.csv")
            .find(std::to_string(outcomes[0].shards_finished) + " of 65,536 shards\"") != std::string::npos);
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

TEST_CASE("validate_gpu: with the budget spent examples are not asked for again") {
  const TemporaryDirectory directory;
  InventedDevice device;
  int calls = 0;
  device.driver_of("hmul, GPU").run = [&](std::uint32_t) {
    ++calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return DeviceAnswer{.time_s = 1,
                        .rows = {{.result = {.digest = 1, .other_nans = 1},
                                  .examples = {{.kind = "NaN", .bits = {}, .values = {}}}}}};
  };
  SweepSettings settings = settings_for({"hmul, GPU"}, device);
  settings.budget_s = 0.4;
  const RowOutcome outcome = swept(directory, settings).outcomes[0];
  CHECK(calls == 1);
  CHECK(outcome.mismatches == 0);
  CHECK(outcome.examples.at(0).kind == "NaN");
}

TEST_CASE("validate_gpu: a wrong value behind many NaNs of other bits is found and shown first") {
  const auto example = [](const std::string& kind) {
    return Example{.kind = kind, .bits = {}, .values = {}};
  };
  for (const std::uint64_t wrong : {100U, 131U, 1123U}) {
    // Every input from 100 to 1123 gives another NaN, but one.
    std::uint64_t asked = 0;
    const auto ask = [&](cuda::Range part) {
      asked += part.count;
      RowAnswer answer;
      for (std::uint64_t i = part.first; i < part.first + part.count; ++i) {
        ++(i == wrong ? answer.result.mismatches : answer.result.other_nans);
        if (answer.examples.size() < 8)
          answer.examples.push_back(example(i == wrong ? "value, variant 2" : "NaN"));
      }
      return answer;
    };
    const cuda::Range all{.first = 100, .count = 1024};
    RowAnswer row = ask(all);
    const std::uint64_t before = asked;
    prepend_value_examples(row, all, ask);
    REQUIRE(!row.examples.empty());
    CHECK(row.examples.front().kind == "value, variant 2");
    CHECK(std::ranges::count_if(row.examples, [](const Example& each) { return each.kind != "NaN"; }) == 1);
    CHECK(asked - before <= 2 * 1024);
  }
  RowAnswer nans{.result = {.other_nans = 1}, .examples = {example("NaN")}};
  prepend_value_examples(nans, {.first = 0, .count = 8}, [](cuda::Range) -> RowAnswer { throw 0; });
  CHECK(nans.examples.size() == 1);
}

TEST_CASE("validate_gpu: rows on a device that there is no time for are not in the census of NaNs") {
  InventedDevice device;
  for (const char* id : {"hadd, GPU", "hneg, GPU"})
    device.driver_of(id).answers = [](std::size_t, const std::vector<Operands>& operands) {
      return std::vector<std::uint64_t>(operands.size(), 0x7FFF);
    };
  const std::vector<std::size_t> chosen{row_index("hadd, GPU"), row_index("hneg, GPU"),
                                        row_index("hadd, software half")};
  for (const double seconds : {0.0, 1e9}) {
    const TemporaryDirectory directory;
    {
      sim::RunRecord record(directory / "run");
      CHECK(write_nan_census(record, chosen, {.drivers = &device.drivers, .device_s = seconds}) ==
            (seconds == 0 ? 2 : 0));
      record.commit({});
    }
    const std::string census = test::content_of(directory / "run/nan_census.csv");
    CHECK(census.find("hadd,software half,") != std::string::npos);
    CHECK((census.find("hneg,GPU,") == std::string::npos) == (seconds == 0));
  }
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
  // Of another depth, another accumulator, and of a family that looks at tiles.
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
