/// The table of what was proven on which GPU, and the one record of several programs.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ranges>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/gpu/gpu_status/merge.h"
#include "experiments/gpu/gpu_status/status.h"
#include "experiments/gpu/gpu_throughput/streaming.h"
#include "experiments/gpu/validate_gpu/rows.h"
#include "experiments/validation/record_files.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

namespace {

namespace fs = std::filesystem;
namespace validate_gpu = experiments::validate_gpu;
using experiments::gpu_status::merge;
using experiments::gpu_status::status_table;
using experiments::gpu_status::unpack;
using experiments::gpu_status::with_table;
using experiments::validation::CsvTable;
using nlohmann::json;
using test::contains;
using test::content_of;
using test::TemporaryDirectory;

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

json gpu(const std::string& name) {
  return {{"name", name}, {"driver", "580.1"}, {"uuid", "GPU-1"}, {"compute_capability", 90}};
}

/// The rows on a GPU of one family, each with so many inputs tried of 65536, as a record holds them.
std::string verdicts(std::string_view family, int inputs, int mismatches_of_the_first) {
  std::string table =
      "operation,family,subject,domain,inputs_possible,inputs,mismatches,other_nans,not_correctly_rounded\n";
  int mismatches = mismatches_of_the_first;
  for (const validate_gpu::Row& row : validate_gpu::rows()) {
    if (!row.is_on_gpu() || row.operation->family != family) continue;
    table += row.operation->name + ",\"" + std::string(family) + "\"," +
             std::string(validate_gpu::name_of(row.subject)) + ",all 2^16 codes,65536," +
             std::to_string(inputs) + "," + std::to_string(mismatches) + ",2,0\n";
    mismatches = 0;
  }
  return table;
}

struct MadeUp {
  json gpu;
  std::string verdicts;
  json summary = json::object();
};

void write_record(const fs::path& folder, const MadeUp& made_up) {
  const json manifest{{"experiment", "gpu"},
                      {"gpu", made_up.gpu},
                      {"date", "2030-01-02T03:04:05Z"},
                      {"git_revision", "0123456789abcdef0123456789abcdef01234567"},
                      {"git_dirty", false}};
  write(folder / "manifest.json", manifest.dump());
  write(folder / "summary.json", made_up.summary.dump());
  write(folder / "verdicts.csv", made_up.verdicts);
}

std::string line_of(const std::string& table, const std::string& what) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("| " + what + " |")) return line;
  }
  return "";
}

std::size_t rows_of(std::string_view family) {
  return static_cast<std::size_t>(std::ranges::count_if(validate_gpu::rows(), [&](const auto& row) {
    return row.is_on_gpu() && row.operation->family == family;
  }));
}

}  // namespace

TEST_CASE("gpu_status: the table of docs/gpu.md is what the committed records prove") {
  const fs::path root = HALFLAB_SOURCE_DIRECTORY;
  const std::string page = content_of(root / "docs" / "gpu.md");
  const std::string table = status_table(root / "experiments" / "records");
  INFO("./lab gpu --status writes it");
  CHECK((with_table(page, table) == page));
}

TEST_CASE("gpu_status: without a record nothing has run, and every family has its line") {
  const TemporaryDirectory records;
  write(records / "another" / "manifest.json", R"({"experiment": "formats", "gpu": null})");
  const std::string table = status_table(records.path());
  CHECK(line_of(table, "arithmetic") ==
        "| arithmetic | " + std::to_string(rows_of("arithmetic")) + " | not yet run |  |  |");
  for (const validate_gpu::Row& row : validate_gpu::rows()) {
    if (row.is_on_gpu()) CHECK(contains(line_of(table, std::string(row.operation->family)), "not yet run"));
  }
  std::istringstream lines(table);
  int number = 0;
  for (std::string line; std::getline(lines, line); ++number)
    CHECK((number < 2 || contains(line, "| not yet run |")));
  CHECK(number > 10);
}

TEST_CASE("gpu_status: a record shows where a family was proven, and how far") {
  const TemporaryDirectory records;
  write_record(records / "h", {.gpu = gpu("GPU One"),
                               .verdicts = verdicts("arithmetic", 65536, 0),
                               .summary = {{"gpu_tests.exit_code", 0},
                                           {"gpu_tests.passed", 5},
                                           {"gpu_tests.failed", 0},
                                           {"explain_gemm.exit_code", 137}}});
  const std::string table = status_table(records.path());
  const std::string rows = std::to_string(rows_of("arithmetic"));
  const std::string line = line_of(table, "arithmetic");
  INFO(table);
  CHECK(contains(line, "| " + rows + " | all run, " + rows + " on every input; no mismatch; " +
                           std::to_string(2 * rows_of("arithmetic")) + " NaNs of other bits | 2^"));
  CHECK(contains(line, "GPU One, driver 580.1, 2030-01-02, 01234567 |"));
  CHECK(contains(line_of(table, "comparison"), "| not yet run |"));
  CHECK(contains(table, "| 5 passed; 0 failed |"));
  CHECK(contains(table, "| **exit code 137** |"));

  write_record(records / "h", {.gpu = gpu("GPU One"), .verdicts = verdicts("arithmetic", 256, 7)});
  CHECK(contains(line_of(status_table(records.path()), "arithmetic"),
                 "| all run, 0 on every input; **7 mismatches in 1**; "));
}

TEST_CASE("gpu_status: of two records of one GPU the longer one counts, and the mismatches of both") {
  const TemporaryDirectory records;
  write_record(records / "a", {.gpu = gpu("GPU One"), .verdicts = verdicts("fused multiply-add", 65536, 0)});
  write_record(records / "b", {.gpu = gpu("GPU One"), .verdicts = verdicts("fused multiply-add", 256, 3)});
  write_record(records / "c", {.gpu = gpu("GPU Two"), .verdicts = verdicts("fused multiply-add", 256, 0)});
  const std::string table = status_table(records.path());
  const std::string rows = std::to_string(rows_of("fused multiply-add"));
  INFO(table);
  CHECK(contains(table, "all run, " + rows + " on every input; **3 mismatches in 1**"));
  CHECK(contains(table, "all run, 0 on every input; no mismatch"));
  CHECK(contains(table, "GPU Two, driver 580.1"));
}

TEST_CASE("gpu_status: kernels that were timed are counted, and shown where they are held against a target") {
  const TemporaryDirectory records;
  const std::vector<std::string> names = experiments::gpu_throughput::streaming_row_names();
  write_record(records / "h", {.gpu = gpu("GPU One")});
  write(records / "h" / "throughput.csv", "row,size,unit,rate_per_s,limit,ratio,target\n" + names.front() +
                                              ",,B,2.5e12,,1,\n" + names.back() + ",,B,2e12," +
                                              names.front() + ",0.8,0.9\n");
  const std::string table = status_table(records.path());
  INFO(table);
  CHECK(contains(line_of(table, "kernels that stream through memory"),
                 "| 2 of " + std::to_string(names.size()) + " right and timed |"));
  CHECK(contains(line_of(table, "kernels of matrix products"), "| not yet run |"));
  CHECK(contains(table,
                 "| `" + names.back() + "` |  | 2 TB/s | 80.0 % of `" + names.front() + "` | GPU One |"));
  CHECK(!contains(table, "2.5 TB/s"));
  write(records / "h" / "throughput.csv", "row,size,unit,rate_per_s,limit,ratio,target\na,,B,fast,,1,\n");
  CHECK_THROWS_WITH_AS(status_table(records.path()), doctest::Contains("rate_per_s 'fast' must be a number"),
                       std::runtime_error);
}

TEST_CASE("gpu_status: a record that is not of a GPU is refused as a proof") {
  for (const json& none : {json(), json("GPU One"), json{{"name", "GPU One"}, {"driver", "580.1"}}}) {
    const TemporaryDirectory records;
    write_record(records / "r", {.gpu = none, .verdicts = verdicts("arithmetic", 65536, 0)});
    CHECK_THROWS_WITH_AS(status_table(records.path()), doctest::Contains("only what ran on a GPU is a proof"),
                         std::runtime_error);
  }
  CHECK_THROWS_AS(status_table("/nonexistent"), std::runtime_error);
}

TEST_CASE("gpu_status: only what stands between the marks is written") {
  const std::string marks = "a\n<!-- gpu-status:begin -->\nold\n<!-- gpu-status:end -->\nb\n";
  CHECK(with_table(marks, "new\n") == "a\n<!-- gpu-status:begin -->\nnew\n<!-- gpu-status:end -->\nb\n");
  CHECK_THROWS_AS(with_table("no marks\n", "new\n"), std::invalid_argument);
}

TEST_CASE("gpu_status: tables are read with quotes, and damaged ones are refused with their line") {
  const TemporaryDirectory directory;
  const fs::path file = directory / "t.csv";
  write(file, "name,inputs\n\"a, \"\"b\"\"\",3\nc,4\n");
  const auto table = CsvTable::read(file);
  REQUIRE(table);
  CHECK(table->size() == 2);
  CHECK(table->cell(0, "name") == "a, \"b\"");
  CHECK(table->number(1, "inputs") == 4);
  CHECK_THROWS_WITH_AS(table->number(0, "name"), doctest::Contains("row 1"), std::runtime_error);
  CHECK_THROWS_WITH_AS(table->cell(0, "none"), doctest::Contains("no column 'none'"), std::runtime_error);
  CHECK_FALSE(CsvTable::read(directory / "absent.csv"));
  write(file, "a,b\n1,2\n3\n");
  CHECK_THROWS_WITH_AS(CsvTable::read(file), doctest::Contains("row 2"), std::runtime_error);
}

TEST_CASE("gpu_status: several runs become one record of at most eight files, and are had back from it") {
  const TemporaryDirectory directory;
  const fs::path runs = directory / "runs", out = directory / "out";
  write(runs / "gpu.json", gpu("GPU One").dump());
  write(runs / "runs", "gpu_tests 0 12\nvalidate_gpu 1 200\ngpu_throughput 124 90\n");
  write(runs / "gpu_tests.log",
        "a_test.cpp:1: MESSAGE: skipped: no device\n"
        "[doctest] test cases:  5 |  4 passed | 1 failed | 0 skipped\n[doctest] Status: FAILURE!\n");
  write(runs / "gpu_throughput.log", "one\nlast words\n");
  write(runs / "validate_gpu/manifest.json", R"({"options": {"device": "cuda"}})");
  write(runs / "validate_gpu/summary.json", R"({"mismatches": 3, "device": "cuda", "x": 0.5})");
  write(runs / "validate_gpu/verdict.txt", "Three are wrong.\n");
  write(runs / "validate_gpu.log", "Three are wrong.\n\nSoon.\n");
  write(runs / "validate_gpu/ulp_errors.gp", "plot 'ulp_errors.csv'\n");
  for (const char* file : {"verdicts", "counterexamples", "functions", "ulp_errors", "timing"})
    write(runs / "validate_gpu" / (std::string(file) + ".csv"), std::string(file) + ", \"\u00b5\"\n");
  write(runs / "validate_gpu/shards.bin", "shards");
  write(runs / "gpu_throughput/timing.csv", "throughput\n");

  merge(runs, out);
  const auto files = test::contents_of(out);
  CHECK(files.size() == 8);
  CHECK(files.at("shards.bin") == "shards");
  CHECK(files.at("throughput.csv") == "throughput\n");
  const json summary = json::parse(files.at("summary.json"));
  CHECK(summary.at("validate_gpu.mismatches") == 3);
  CHECK(summary.at("validate_gpu.x") == 0.5);
  CHECK(summary.at("gpu_tests.passed") == 3);
  CHECK(summary.at("gpu_tests.failed") == 1);
  CHECK(summary.at("gpu_tests.skipped") == 1);
  CHECK(summary.at("gpu_throughput.exit_code") == 124);
  const json merged = json::parse(files.at("manifest.json"));
  CHECK(merged.at("gpu") == gpu("GPU One"));
  CHECK(merged.at("wall_time_s") == 302);
  CHECK(merged.at("programs").at(1).at("options").at("device") == "cuda");
  CHECK(merged.at("left_out") == json::array());
  CHECK(contains(files.at("verdict.txt"), "validate_gpu: a check failed.\n\nThree are wrong.\n\nSoon."));
  CHECK(contains(files.at("verdict.txt"), "gpu_throughput: ended by its time limit.\n\none\nlast words"));

  CHECK(unpack(out) == std::vector<std::string>{"validate_gpu/ulp_errors.gp"});
  auto programs = test::contents_of(runs / "validate_gpu");
  programs.erase("shards.bin");
  programs["log.txt"] = "Three are wrong.\n\nSoon.\n";
  CHECK((test::contents_of(out / "validate_gpu") == programs));
  CHECK(content_of(out / "gpu_throughput/timing.csv") == "throughput\n");
  CHECK(contains(content_of(out / "gpu_tests/log.txt"), "MESSAGE: skipped: no device\n"));
}

TEST_CASE(
    "gpu_status: a program that cannot run there is in the record with its reason, and has not failed") {
  const TemporaryDirectory directory;
  const fs::path runs = directory / "runs", record = directory / "records" / "r";
  write(runs / "gpu.json", gpu("GPU One").dump());
  write(runs / "runs", "gpu_tests 0 12\nexplain_gemm not_run 0\n");
  write(runs / "explain_gemm.log", "cuBLAS cannot be used: no library\n");
  merge(runs, record);
  CHECK(contains(content_of(record / "verdict.txt"),
                 "explain_gemm: not run: cuBLAS cannot be used: no library.\n"));
  const json summary = json::parse(content_of(record / "summary.json"));
  CHECK(summary.at("explain_gemm.not_run") == "cuBLAS cannot be used: no library");
  CHECK_FALSE(summary.contains("explain_gemm.exit_code"));
  const json programs = json::parse(content_of(record / "manifest.json")).at("programs");
  CHECK(programs.at(0).at("exit_code") == 0);
  CHECK(programs.at(1).at("exit_code").is_null());
  CHECK(contains(line_of(status_table(directory / "records"), "products of cuBLAS explained"),
                 "| not yet run |"));
  write(runs / "runs", "explain_gemm not-run 0\n");
  CHECK_THROWS_WITH_AS(merge(runs, record), doctest::Contains("an exit code or not_run"), std::runtime_error);
}

TEST_CASE("gpu_status: what would make a record too large is left out and named") {
  const TemporaryDirectory directory;
  const fs::path runs = directory / "runs", out = directory / "out";
  write(runs / "runs", "explain_gemm 0 1\n");
  write(runs / "explain_gemm/a.csv", std::string(13 << 20, 'a'));
  write(runs / "explain_gemm/b.csv", "b\n");
  merge(runs, out);
  CHECK(fs::file_size(out / "runs.json") < 100);
  const json manifest = json::parse(content_of(out / "manifest.json"));
  CHECK(manifest.at("left_out") == json{"explain_gemm/a.csv"});
  unpack(out);
  CHECK(content_of(out / "explain_gemm/b.csv") == "b\n");
}

TEST_CASE("gpu_status: a damaged record unpacks nothing elsewhere") {
  const TemporaryDirectory directory;
  const fs::path record = directory / "inner" / "record";
  write(record / "manifest.json", R"({"experiment": "formats"})");
  CHECK_THROWS_WITH_AS(unpack(record), doctest::Contains("is no record of ./lab gpu"), std::runtime_error);
  write(record / "manifest.json", R"({"experiment": "gpu"})");
  for (const char* runs :
       {R"({"..": {"a.csv": ""}})", R"({"a/b": {"a.csv": ""}})", R"({"a": {"../../x.csv": ""}})"}) {
    write(record / "runs.json", runs);
    CHECK_THROWS_WITH_AS(unpack(record), doctest::Contains("is no name"), std::runtime_error);
  }
  fs::create_directory_symlink(directory.path(), record / "linked");
  write(record / "runs.json", R"({"linked": {"x.csv": ""}})");
  CHECK_THROWS_WITH_AS(unpack(record), doctest::Contains("is a link"), std::runtime_error);
  CHECK_FALSE(fs::exists(directory / "x.csv"));
  fs::remove(record / "linked");
  CHECK(test::contents_of(directory.path()).size() <= 5);
}

TEST_CASE("gpu_status: a merged record proves something only where there was a GPU") {
  const TemporaryDirectory directory;
  const fs::path runs = directory / "runs", record = directory / "records" / "r";
  write(runs / "gpu.json", gpu("GPU One").dump());
  write(runs / "runs", "validate_gpu 0 1\n");
  write(runs / "validate_gpu/verdicts.csv", verdicts("arithmetic", 65536, 0));
  merge(runs, record);
  CHECK(contains(line_of(status_table(directory / "records"), "arithmetic"), "no mismatch"));
  write(runs / "gpu.json", "null\n");
  merge(runs, record);
  CHECK(json::parse(content_of(record / "manifest.json")).at("gpu").is_null());
  CHECK_THROWS_AS(status_table(directory / "records"), std::runtime_error);
  for (const char* wrong : {"validate_gpu", "../validate_gpu 0 1", ". 0 1", "caf\xe9 0 1"}) {
    write(runs / "runs", "formats 0 1\n" + std::string(wrong) + "\n");
    CHECK_THROWS_WITH_AS(merge(runs, record), doctest::Contains("line 2"), std::runtime_error);
  }
  write(runs / "runs", "formats 0 1\nformats 1 1\n");
  CHECK_THROWS_WITH_AS(merge(runs, record), doctest::Contains("stands above"), std::runtime_error);
}
