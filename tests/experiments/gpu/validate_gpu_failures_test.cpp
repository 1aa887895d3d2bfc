/// Sweeps, tables and censuses on a device that fails, on one that there is too little time for, and what is left.

#include <doctest/doctest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "experiments/frame/interrupt.h"
#include "experiments/gpu/probes/sweep.h"
#include "experiments/gpu/validate_gpu/findings.h"
#include "experiments/gpu/validate_gpu/functions.h"
#include "experiments/gpu/validate_gpu/nan_census.h"
#include "tests/experiments/gpu/validate_gpu_invented_device.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

namespace {

namespace probes = experiments::probes;
using namespace experiments::validate_gpu;
using experiments::Interrupted;
using test::contains;
using test::InventedDevice;
using test::row_index;
using test::settings_for;
using test::some_rows;
using test::Swept;
using test::swept;
using test::TemporaryDirectory;

}  // namespace

TEST_CASE("validate_gpu: where the device fails at a row, the others go on, unless it fails at all of them") {
  const auto fails = [](std::uint32_t) -> DeviceAnswer {
    throw std::runtime_error("cudaMemcpy: an illegal memory access was encountered");
  };
  const std::string hsub_failure = "hsub, GPU, shard 0: cudaMemcpy: an illegal memory access was encountered";
  const TemporaryDirectory directory;
  InventedDevice device;
  device.driver_of("hsub, GPU").run = fails;
  const Swept one = swept(directory, settings_for({"hsub, GPU", "hadd, GPU", "hfma, GPU"}, device));
  REQUIRE(one.failures.all().size() == 1);
  CHECK(one.failures.all()[0].text == hsub_failure);
  CHECK(one.failures.concern("hsub, GPU"));
  CHECK_FALSE(one.failures.concern("hadd, GPU"));
  CHECK_FALSE(one.failures.is_device_lost());
  CHECK(one.outcomes[0].shards_finished == 0);
  CHECK(one.outcomes[1].shards_finished == 1);
  CHECK(one.outcomes[2].shards_finished == 4);

  const TemporaryDirectory other;
  for (Driver& driver : device.drivers) driver.run = fails;
  const Swept lost = swept(other, settings_for({"hsub, GPU", "hadd, GPU", "hmul, GPU", "hdiv, GPU"}, device));
  CHECK(lost.failures.all().size() == 3);
  CHECK(lost.failures.is_device_lost());

  // The first failure is the first in time, not in the order of the rows.
  const TemporaryDirectory third;
  CHECK(swept(third, settings_for({"hadd, GPU", "hexp, GPU"}, device))
            .failures.all()
            .front()
            .text.starts_with("hexp, GPU, shard 0: "));

  const TemporaryDirectory written;
  const std::vector<Finding> findings = one.findings();
  {
    experiments::RunRecord record(written / "run");
    write_tables(record, findings);
    write_summary(record, findings);
    write_verdict(record, findings, one.failures);
    CHECK(contains(record.verdict(), "THE DEVICE FAILED at 1 row: " + hsub_failure + "."));
    CHECK_FALSE(contains(record.verdict(), "asked for nothing more"));
    CHECK(contains(record.verdict(), "equal, DEVICE FAILED"));
    record.commit({});
  }
  CHECK(contains(test::content_of(written / "run/verdicts.csv"), "\"not begun, DEVICE FAILED"));
  CHECK(nlohmann::json::parse(test::content_of(written / "run/summary.json")).at("rows_failed") == 1);

  experiments::RunRecord record(written / "lost");
  write_verdict(record, lost.findings(), lost.failures);
  CHECK(contains(record.verdict(), "After these it was asked for nothing more."));
}

TEST_CASE("validate_gpu: a device that fails at tables and the census leaves what it said before") {
  const TemporaryDirectory directory;
  InventedDevice device;
  const std::vector<std::string> ids{"hexp, GPU", "hneg, GPU", "habs, GPU", "hadd, GPU"};
  std::vector<std::string> asked;
  for (const std::string& id : ids)
    device.driver_of(id).answers = [&, id](std::size_t, const std::vector<Operands>& operands) {
      asked.push_back(id);
      if (id == "hneg, GPU" || asked.size() > 4) throw std::runtime_error("cudaMemcpy: launch failure");
      return std::vector<std::uint64_t>(operands.size(), 0x7FFF);
    };
  Swept result = swept(directory, settings_for(ids, device));
  const auto is_chosen = [](std::string_view name) { return name == "hexp"; };
  const auto errors = function_errors(
      is_chosen, true,
      [](const probes::TabulatedFunction&) -> std::vector<FunctionTable> {
        throw std::runtime_error("cudaMalloc: out of memory");
      },
      result.failures);
  CHECK(errors.size() == 1);  // the software half's
  REQUIRE(result.failures.all().size() == 2);
  CHECK(result.failures.all()[0].text == "hexp, GPU, its table: cudaMalloc: out of memory");

  std::vector<std::size_t> chosen;
  for (const std::string& id : ids) chosen.push_back(row_index(id));
  chosen.push_back(row_index("hadd, software half"));
  const auto census = [&](const std::string& name) {
    experiments::RunRecord record(directory / name);
    CHECK(write_nan_census(record, chosen, {.drivers = &device.drivers}, result.failures) == 0);
    record.commit({});
    return test::content_of(directory / (name + "/nan_census.csv"));
  };
  const std::string first = census("first");
  CHECK(asked == ids);
  CHECK(contains(first, "habs,GPU,"));
  CHECK_FALSE(contains(first, "hneg,GPU,"));
  CHECK(contains(first, "hadd,software half,"));
  CHECK(result.failures.all().back().text == "hneg, GPU, census of NaNs: cudaMemcpy: launch failure");
  const std::vector<Finding> findings = result.findings();
  CHECK(findings[1].failed());
  CHECK(findings[1].inputs == 65536);
  CHECK_FALSE(findings[2].failed());

  const std::string second = census("second");
  CHECK(asked.size() == 7);  // three failures in a row end it
  CHECK(result.failures.is_device_lost());
  CHECK_FALSE(contains(second, ",GPU,"));
  CHECK(contains(second, "hadd,software half,"));
  census("third");
  CHECK(asked.size() == 7);
  CHECK(function_errors(is_chosen, false, probes::tabulate, result.failures).empty());
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
  const Swept result = swept(directory, settings_for({"hsub, GPU"}, device));
  CHECK(result.outcomes[0].mismatches == 3);
  CHECK(result.outcomes[0].examples.size() == 1);
  REQUIRE(result.failures.all().size() == 1);
  CHECK(result.failures.all()[0].text == "hsub, GPU, shard 0: cudaMemcpy: unspecified launch failure");
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
    CHECK_FALSE(swept(parts, settings_for(some_rows, device)).failures.all().empty());
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
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    return run(shard);
  };
  RowOutcome first;
  for (double budget_s = 1; first.shards_finished == 0; budget_s *= 2) {  // sanitizers are slow
    settings.budget_s = budget_s;
    const auto start = std::chrono::steady_clock::now();
    first = swept(directory, settings).outcomes[0];
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::duration<double>(budget_s + 4));
  }
  CHECK(first.shards_wanted == 65536);
  CHECK(first.shards_finished <= *settings.budget_s / 0.15 + 2);
  CHECK(first.inputs == std::uint64_t{first.shards_finished} << 32);
  const Swept second = swept(directory, settings);
  const std::vector<RowOutcome>& outcomes = second.outcomes;
  CHECK(outcomes[0].shards_finished > first.shards_finished);
  CHECK(outcomes[1].shards_finished == 1);  // the shorter one came first

  const TemporaryDirectory written;
  {
    experiments::RunRecord record(written / "run");
    write_tables(record, second.findings());
    write_verdict(record, second.findings(), second.failures);
    CHECK(record.verdict().find(std::to_string(outcomes[0].shards_finished) + " of 65,536 shards") !=
          std::string::npos);
    CHECK(record.verdict().find("the next run goes on") != std::string::npos);
    record.commit({});
  }
  CHECK(test::content_of(written / "run/verdicts.csv")
            .find(std::to_string(outcomes[0].shards_finished) + " of 65,536 shards\"") != std::string::npos);
}

TEST_CASE("validate_gpu: with the budget spent examples are not asked for again") {
  const TemporaryDirectory directory;
  InventedDevice device;
  int calls = 0;
  device.driver_of("hmul, GPU").run = [&](std::uint32_t) {
    ++calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    return DeviceAnswer{.time_s = 1,
                        .rows = {{.result = {.digest = 1, .other_nans = 1},
                                  .examples = {{.kind = "NaN", .bits = {}, .values = {}}}}}};
  };
  SweepSettings settings = settings_for({"hmul, GPU"}, device);
  settings.budget_s = 1.0;  // less than two shards take
  const RowOutcome outcome = swept(directory, settings).outcomes[0];
  CHECK(calls == 1);
  CHECK(outcome.mismatches == 0);
  CHECK(outcome.examples.at(0).kind == "NaN");
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
      experiments::RunRecord record(directory / "run");
      DeviceFailures none;
      CHECK(write_nan_census(record, chosen, {.drivers = &device.drivers, .device_s = seconds}, none) ==
            (seconds == 0 ? 2 : 0));
      record.commit({});
    }
    const std::string census = test::content_of(directory / "run/nan_census.csv");
    CHECK(census.find("hadd,software half,") != std::string::npos);
    CHECK((census.find("hneg,GPU,") == std::string::npos) == (seconds == 0));
  }
}
