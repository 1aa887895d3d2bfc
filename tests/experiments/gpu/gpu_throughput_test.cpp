#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/gpu/gpu_throughput/buffers.h"
#include "experiments/gpu/gpu_throughput/gradient_values.h"
#include "experiments/gpu/gpu_throughput/judgement.h"
#include "experiments/gpu/gpu_throughput/measurement.h"
#include "experiments/gpu/gpu_throughput/products.h"
#include "experiments/gpu/gpu_throughput/record.h"
#include "experiments/gpu/gpu_throughput/selection.h"
#include "experiments/gpu/gpu_throughput/streaming.h"
#include "fp16/codec.h"
#include "tests/experiments/documented_outputs.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"

namespace {

using namespace experiments;
using namespace experiments::gpu_throughput;

Work work(std::string name, double amount, Check check = {.compared = 10}) {
  return {.name = std::move(name), .amount = amount, .check = [check] { return check; }};
}

/// A device on which a call takes as long as the table says.
struct FakeDevice {
  std::map<std::string, double> call_s;
  std::map<std::string, std::vector<std::size_t>> turns;

  TimeCalls time_calls() {
    return [this](const Work& work, std::size_t turn, std::size_t calls) {
      turns[work.name].push_back(turn);
      return call_s.at(work.name) * static_cast<double>(calls);
    };
  }
};

Row timed(std::string name, double amount, double median_s, std::vector<Comparison> comparisons = {}) {
  return {.name = std::move(name),
          .group = {},
          .amount = amount,
          .comparisons = std::move(comparisons),
          .check = {.compared = 10},
          .times = Times{.median_s = median_s,
                         .lowest_s = 0.5 * median_s,
                         .highest_s = 2 * median_s,
                         .repeats = 5,
                         .calls_per_repeat = 3}};
}

}  // namespace

TEST_CASE("gpu_throughput: median, lowest and highest time") {
  const Times odd = times_of({5, 1, 4});
  CHECK(odd.median_s == 4);
  CHECK(odd.lowest_s == 1);
  CHECK(odd.highest_s == 5);
  CHECK(odd.repeats == 3);
  CHECK(times_of({4, 1, 2, 8}).median_s == 3);
  CHECK_THROWS_AS(times_of({}), std::invalid_argument);
}

TEST_CASE("gpu_throughput: a repeat has as many calls as fill its time, and turns go on from call to call") {
  FakeDevice device{.call_s = {{"short", 1e-6}, {"middle", 1e-3}, {"long", 0.5}}};
  const Group group{.name = "g", .works = {work("short", 8), work("middle", 8), work("long", 8)}};
  const std::vector<Row> rows =
      measure(group, {.repeats = 4, .least_repeat_s = 4e-3, .time_calls = device.time_calls()});
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].key() == "short.g");
  CHECK(rows[0].times->calls_per_repeat == 100);
  CHECK(rows[1].times->calls_per_repeat == 4);
  CHECK(rows[2].times->calls_per_repeat == 1);
  CHECK(rows[1].times->repeats == 4);
  CHECK(rows[1].times->median_s == doctest::Approx(1e-3));
  CHECK(rows[1].rate() == doctest::Approx(8e3));
  // One call that loads the kernel, three that warm up, then four repeats of four.
  CHECK(device.turns["middle"] == std::vector<std::size_t>{0, 1, 4, 8, 12, 16});
}

TEST_CASE("gpu_throughput: rows that are absent, wrong or fail are not timed") {
  FakeDevice device{.call_s = {{"good", 1e-3}}};
  Group group{.name = {}, .works = {work("good", 8), work("wrong", 8, {.compared = 10, .wrong = 1})}};
  Work absent = work("absent", 8);
  absent.absent = "no such library";
  absent.check = [] { return Check{.compared = 10, .wrong = 10}; };
  group.works.push_back(absent);
  for (const bool is_peer : {false, true}) {
    Work& refused = group.works.emplace_back(work("refused", 8));
    refused.check = []() -> Check { throw std::runtime_error("launch failed"); };
    refused.is_peer = is_peer;
  }
  const std::vector<Row> rows = measure(group, {.repeats = 3, .time_calls = device.time_calls()});
  CHECK(rows[0].times.has_value());
  CHECK_FALSE(rows[1].times.has_value());
  CHECK(rows[1].check.wrong == 1);
  CHECK_FALSE(rows[2].times.has_value());
  CHECK(rows[2].absent == "no such library");
  CHECK(rows[2].check.compared == 0);
  CHECK_FALSE(rows[2].failed());
  CHECK(rows[3].failure == "launch failed");
  CHECK(rows[3].failed());
  CHECK(rows[4].absent == "launch failed");
  CHECK_FALSE(rows[4].failed());
}

TEST_CASE("gpu_throughput: a row that fails while it is timed has no times, and the others have theirs") {
  FakeDevice device{.call_s = {{"good", 1e-3}, {"faulty", 1e-3}}};
  int calls = 0;
  const auto time_calls = [&, time = device.time_calls()](const Work& work, std::size_t turn,
                                                          std::size_t count) {
    if (work.name == "faulty" && ++calls > 4)
      throw std::runtime_error("cudaEventSynchronize: launch failure");
    return time(work, turn, count);
  };
  const Group group{.name = {}, .works = {work("faulty", 8), work("good", 8)}};
  const std::vector<Row> rows = measure(group, {.repeats = 5, .time_calls = time_calls});
  CHECK(rows[0].failure == "cudaEventSynchronize: launch failure");
  CHECK(rows[0].failed());
  CHECK_FALSE(rows[0].times.has_value());
  CHECK(calls == 5);
  CHECK(rows[1].times->repeats == 5);
}

TEST_CASE("gpu_throughput: three rounds are measured even when time is up at once") {
  FakeDevice device{.call_s = {{"a", 1}}};
  const Group group{.name = {}, .works = {work("a", 1)}};
  const std::vector<Row> rows =
      measure(group, {.repeats = 50, .time_calls = device.time_calls(), .time_is_up = [] { return true; }});
  CHECK(rows[0].times->repeats == 3);
}

TEST_CASE("gpu_throughput: a rate is judged by its limit's in the same run") {
  std::vector<Row> rows{timed("copy", 1000, 1e-3),
                        timed("good", 900, 1e-3, {{"copy", 0.85}}),
                        timed("bad", 800, 1e-3, {{"copy", 0.85}, {"good", 0.5}}),
                        timed("open", 800, 1e-3, {{"copy"}}),
                        timed("hasty", 9, 1e-5, {{"copy", 0.85}}),
                        timed("alone", 9, 1e-3, {{"nobody", 0.85}})};
  rows.push_back(timed("idle", 9, 1e-3, {{"copy", 0.85}}));
  rows.back().times.reset();
  const std::vector<Judgement> judgements = judge(rows);
  REQUIRE(judgements.size() == 7);
  CHECK(judgements[0].ratio == doctest::Approx(0.9));
  CHECK(judgements[0].outcome == gpu_throughput::Outcome::reached);
  CHECK(judgements[0].key == "good");
  CHECK(judgements[1].outcome == gpu_throughput::Outcome::missed);
  CHECK(judgements[2].key == "bad.over_good");
  CHECK(judgements[2].outcome == gpu_throughput::Outcome::reached);
  CHECK(judgements[2].peer == &rows[1]);
  CHECK(judgements[3].outcome == gpu_throughput::Outcome::no_target);
  CHECK(judgements[4].outcome == gpu_throughput::Outcome::too_short);
  CHECK(judgements[5].outcome == gpu_throughput::Outcome::not_judged);
  CHECK(judgements[5].peer == nullptr);
  CHECK(judgements[6].outcome == gpu_throughput::Outcome::not_judged);
  CHECK(conclusion(judgements) ==
        "2 of 6 targets are reached. Not reached: bad 80.0 % of copy. 3 are not judged.");
  CHECK(conclusion({}) == "None of these rows has a target.");
}

TEST_CASE("gpu_throughput: limits are looked for in the row's own group") {
  std::vector<Row> rows{timed("limit", 1000, 1e-3), timed("row", 500, 1e-3, {{"limit", 0.4}}),
                        timed("limit", 2000, 1e-3)};
  rows[1].group = rows[2].group = "4096";
  const std::vector<Judgement> judgements = judge(rows);
  CHECK(judgements[0].peer == &rows[2]);
  CHECK(judgements[0].ratio == doctest::Approx(0.25));
  CHECK(judgements[0].key == "row.4096");
}

TEST_CASE("gpu_throughput: the copy beside what the driver states") {
  const std::vector<Row> rows{timed("copy", 3e9, 1e-3)};
  CHECK(copy_text(rows, 4e12) ==
        "The copy reaches 75.0 % of the 4 TB/s that the driver states for the memory.\n");
  CHECK(copy_text(rows, 0) == "");
  CHECK(copy_text({}, 4e12) == "");
}

TEST_CASE("gpu_throughput: rates with their prefixes") {
  CHECK(rate_text(2.914e12, Unit::bytes) == "2.91 TB/s");
  CHECK(rate_text(999, Unit::bytes) == "999 B/s");
  CHECK(rate_text(6.12e11, Unit::flop) == "612 GFLOP/s");
}

TEST_CASE("gpu_throughput: the table of times has a line for each limit, and the summary its keys") {
  const test::TemporaryDirectory directory;
  std::vector<Row> rows{timed("copy", 1000, 1e-3), timed("row", 500, 1e-3, {{"copy", 0.4}, {"peer"}}),
                        timed("peer", 250, 1e-3)};
  {
    experiments::RunRecord record(directory / "out");
    const std::vector<Judgement> judgements = judge(rows);
    write_timing(record, rows, judgements);
    write_summary(record, rows, judgements);
    write_summary(record, gpu_throughput::ContextMemory());
    record.commit({});
  }
  const std::map<std::string, std::string> files = test::contents_of(directory / "out");
  const std::string& timing = files.at("timing.csv");
  CHECK(std::ranges::count(timing, '\n') == 5);
  CHECK(timing.find("row,,B,500,5,3,0.001,0.0005,0.002,500000,copy,0.5,0.25,1,0.4,reached\n") !=
        std::string::npos);
  CHECK(timing.find("row,,B,500,5,3,0.001,0.0005,0.002,500000,peer,2,1,4,,\n") != std::string::npos);
  const std::string& summary = files.at("summary.json");
  for (const char* key :
       {"\"rows\": 3", "\"rate.copy\"", "\"ratio.row\": 0.5", "\"limit.row\"", "\"ratio.row.over_peer\": 2"})
    CHECK(summary.find(key) != std::string::npos);
  programs::Written written;
  written.add(files);
  CHECK(
      programs::disagreements(programs::parse_outputs(text_of(gpu_throughput::outputs())), written).empty());
}

TEST_CASE("gpu_throughput: a row that fails fails the run, and reasons stand once") {
  const test::TemporaryDirectory directory;
  std::vector<Row> rows{timed("copy", 1000, 1e-3), timed("absent", 1, 1), timed("absent_too", 1, 1)};
  for (Row* row : {&rows[1], &rows[2]}) {
    row->absent = "no library";
    row->times.reset();
    row->check = {};
  }
  experiments::RunRecord record(directory / "out");
  Run good(record, {.threads = 1, .terminal = nullptr, .warnings = nullptr});
  write_verdict(good, rows);
  CHECK_FALSE(good.failure().has_value());
  CHECK(record.verdict().find("1 of 3 rows ran") != std::string::npos);
  CHECK(record.verdict().find("Not run: absent, absent_too: no library.") != std::string::npos);
  rows[0].check.wrong = 1;
  Run bad(record, {.threads = 1, .terminal = nullptr, .warnings = nullptr});
  write_verdict(bad, rows);
  CHECK(bad.failure() == "1 of 3 rows have wrong results or fail");
}

TEST_CASE("gpu_throughput: every row's limits are rows, and are chosen with it") {
  const Selection all = selection_of("all");
  for (const std::string& row : all.rows) {
    for (const Comparison& comparison : streaming_comparisons(row)) CHECK(all.wants(comparison.peer));
    for (const Comparison& comparison : product_comparisons(row, 4096)) CHECK(all.wants(comparison.peer));
  }
  const Selection histogram = selection_of("half_histogram");
  for (const char* name : {"copy", "half_histogram", "cub_histogram_even", "cub_histogram_range"})
    CHECK(histogram.wants(name));
  CHECK_FALSE(histogram.wants_any(product_row_names()));
  CHECK(selection_of("wgmma_binary32_rounded").wants("cublas_binary32_rounded"));
  CHECK_THROWS_WITH_AS(selection_of("half_histogramm"), doctest::Contains("did you mean 'half_histogram'?"),
                       std::invalid_argument);
  CHECK(edges_of(4096) == std::vector<int>{1024, 4096, 8192});
  CHECK(edges_of(3) == std::vector<int>{3, 6});
}

TEST_CASE("gpu_throughput: targets of products hold at one size") {
  CHECK(product_comparisons("mma_sync_binary32", 4096).front().target == 0.4);
  CHECK(product_comparisons("wgmma_binary16", 4096).front().target == 0.5);
  CHECK_FALSE(product_comparisons("wgmma_binary16", 8192).front().target.has_value());
  CHECK_FALSE(product_comparisons("fma_binary32", 4096).front().target.has_value());
  CHECK(product_comparisons("fma_binary32", 4096).front().peer == "cublas_sgemm");
}

TEST_CASE("gpu_throughput: the data has zeros, subnormals, infinities and NaNs, and mostly neither") {
  constexpr std::size_t count = 1 << 20;
  const std::vector<std::uint16_t> halves = gradient_halves(count);
  const std::vector<float> floats = gradient_floats(count);
  std::map<std::string, std::size_t> of_halves, of_floats;
  for (const std::uint16_t code : halves) {
    ++of_halves[fp16::is_zero<fp16::binary16>(code)        ? "zero"
                : fp16::is_subnormal<fp16::binary16>(code) ? "subnormal"
                : fp16::is_finite<fp16::binary16>(code)    ? "normal"
                                                           : "nonfinite"];
  }
  for (const float value : floats) {
    const float magnitude = std::fabs(value);
    ++of_floats[value == 0                 ? "zero"
                : !std::isfinite(value)    ? "nonfinite"
                : magnitude <= 0x1p-25f    ? "flushed"
                : magnitude < 0x1.ffcp-15f ? "subnormal"
                                           : "normal"];
  }
  for (auto* classes : {&of_halves, &of_floats}) {
    CHECK((*classes)["zero"] > count / 20);
    CHECK((*classes)["zero"] < count / 8);
    CHECK((*classes)["nonfinite"] == count / 65521);
    CHECK((*classes)["subnormal"] > count / 50);
    CHECK((*classes)["normal"] > count / 4);
  }
}

TEST_CASE("gpu_throughput: results are compared bit for bit, NaNs aside") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> found{0.0f, nan, 1.0f, nan}, expected{-0.0f, -nan, 1.0f, 1.0f};
  const Check floats = compare(found, expected);
  CHECK(floats.compared == 4);
  CHECK(floats.wrong == 2);
  CHECK(compare<std::uint16_t>({0x7c01, 0x8000, 0x7c00}, {0xffff, 0, 0x7c00}).wrong == 1);
}
