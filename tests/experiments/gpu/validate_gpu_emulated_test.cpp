/// validate_gpu --device cuda as its users run it, on a device that interprets the kernels (tests/emulator).

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/experiments/programs.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

namespace {

namespace fs = std::filesystem;
using programs::Outcome;
using test::contains;
using test::TemporaryDirectory;

/// A run over functions of 65,536 inputs, for which the interpreter is fast enough.
const std::string command = "--device cuda --quick --op hneg,hisnan,half2ll_rz,half2float,hrint,ldg ";

Outcome run(const std::string& arguments, const std::string& fault = "") {
  const std::string environment = fault.empty() ? "" : "env HALFLAB_EMULATOR_FAULT=" + fault + ' ';
  return programs::run("validate_gpu_emulated " + arguments, environment);
}

/// What does not depend on when and how fast a run was.
std::map<std::string, std::string> lasting_contents(const std::string& directory) {
  std::map<std::string, std::string> files = test::contents_of(directory);
  files.erase("manifest.json");
  files.erase("timing.csv");
  return files;
}

}  // namespace

TEST_CASE("validate_gpu: all triples are refused where no row has three operands") {
  const TemporaryDirectory directory;
  const Outcome refused = run(command + "--fma48 --out " + (directory / "out").string());
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.output,
                 "--fma48: is of the family fused multiply-add, of which --op chooses no operation"));
}

TEST_CASE("validate_gpu: rows on a device are run, recorded and compared") {
  const TemporaryDirectory directory;
  const std::string out = directory / "out", theirs = directory / "theirs.bin";
  const Outcome first = run(command + "--out " + out);
  INFO(first.output);
  REQUIRE(first.exit_code == 0);
  const nlohmann::json summary = programs::summary_of(out);
  CHECK(summary.at("device") == "cuda");
  CHECK(summary.at("rows_run") == 11);
  CHECK(summary.at("rows_exhaustive") == 11);
  CHECK(summary.at("mismatches") == 0);
  CHECK(summary.at("inputs") == 11 * 65536);
  const auto manifest = nlohmann::json::parse(test::content_of(fs::path(out) / "manifest.json"));
  CHECK(manifest.at("gpu").at("name") == "emulated sm_90");
  for (const char* key : {"driver", "uuid", "compute_capability"}) CHECK(manifest.at("gpu").contains(key));
  CHECK(test::content_of(fs::path(out) / "nan_census.csv").find("half2float,GPU packed,-quiet NaN,a,") !=
        std::string::npos);

  fs::copy_file(fs::path(out) / "shards.bin", theirs);
  CHECK(run(command + "--out " + out + " --compare " + theirs).exit_code == 0);
  CHECK(programs::summary_of(out).at("shards_compared") == 11);
  std::string bytes = test::content_of(theirs);
  bytes[bytes.size() - 12] = static_cast<char>(bytes[bytes.size() - 12] ^ 1);  // the last digest
  std::ofstream(theirs, std::ios::binary) << bytes;
  CHECK(run(command + "--out " + out + " --compare " + theirs).exit_code == 1);
}

TEST_CASE("validate_gpu: a device that fails leaves what it did, and the next run goes on") {
  const TemporaryDirectory directory;
  const std::string whole = directory / "whole", parts = directory / "parts";
  REQUIRE(run(command + "--out " + whole).exit_code == 0);
  const Outcome failed = run(command + "--out " + parts, "launch=4");
  INFO(failed.output);
  CHECK(failed.exit_code == 1);
  CHECK(failed.output.find("validate_gpu: check failed: the device failed at ") != std::string::npos);
  CHECK(failed.output.find("shard 0: ") != std::string::npos);
  const nlohmann::json summary = programs::summary_of(parts);
  CHECK(summary.at("rows_failed").get<int>() >= 1);
  CHECK(summary.at("rows_run").get<int>() < 11);
  CHECK(run(command + "--out " + parts).exit_code == 0);
  CHECK(lasting_contents(whole) == lasting_contents(parts));
}

TEST_CASE("validate_gpu: a device that fails after its sweep loses no verdict") {
  const std::map<std::string, std::string> fails_at{
      {"--device cuda --quick --op hneg,hisnan,half2float,hrint ", "hneg, GPU, census of NaNs: "},
      {"--device all --quick --op hsqrt,hneg ", "hsqrt, GPU, its table: "}};
  for (const auto& [arguments, where] : fails_at) {
    const TemporaryDirectory directory;
    const std::string out = directory / "out";
    REQUIRE(run(arguments + "--out " + out).exit_code == 0);
    const auto sound = lasting_contents(out);
    const nlohmann::json clean = programs::summary_of(out);
    // Finished shards launch nothing: the first launch is that of what comes after them.
    const Outcome failed = run(arguments + "--out " + out, "launch=1");
    INFO(failed.output);
    CHECK(failed.exit_code == 1);
    CHECK(contains(failed.output, "validate_gpu: check failed: the device failed at " + where));
    CHECK(contains(failed.output, "THE DEVICE FAILED at 3 rows: " + where));
    CHECK(contains(failed.output, "After these it was asked for nothing more."));
    const nlohmann::json summary = programs::summary_of(out);
    CHECK(summary.at("rows_failed") == 3);
    for (const char* key : {"rows_run", "rows_exhaustive", "inputs", "mismatches", "shards_finished"})
      CHECK(summary.at(key) == clean.at(key));
    CHECK(contains(test::content_of(fs::path(out) / "verdicts.csv"), "\"equal, DEVICE FAILED\""));
    CHECK(run(arguments + "--out " + out).exit_code == 0);
    CHECK(lasting_contents(out) == sound);
  }
}

TEST_CASE("validate_gpu: without a usable device --device cuda is refused in one line") {
  const TemporaryDirectory directory;
  const auto refuses = [&](const std::string& fault, const std::string& must_name) {
    const std::string out = directory / "never";
    const Outcome outcome = run(command + "--out " + out, fault);
    INFO(outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.output.find(must_name) != std::string::npos);
    CHECK(std::ranges::count(outcome.output, '\n') == 1);
    CHECK(!fs::exists(out));
  };
  refuses("no_device", "no CUDA device: ");
  refuses("old_driver", "driver version is insufficient");
  refuses("capability=75", "no kernel image");
}

TEST_CASE("validate_gpu: a device is asked what functions of two and three operands make of NaNs") {
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  const Outcome outcome = run("--device cuda --budget 0 --op hmin_nan,hfma_relu --out " + out);
  INFO(outcome.output);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.output.find("Nothing was tried yet.") != std::string::npos);
  CHECK(outcome.output.find("0 of 64 shards") != std::string::npos);
  const std::string census = test::content_of(fs::path(out) / "nan_census.csv");
  for (const char* line : {"hmin_nan,GPU,+signalling NaN,b,canonical,511,0x3c00,0x7c01,,0x7fff\n",
                           "hmin_nan,GPU packed,zeros,,-0,1,0x8000,0x0000,,0x8000\n",
                           "hfma_relu,GPU,-quiet NaN,c,canonical,512,0x3c00,0x3c00,0xfe00,0x7fff\n"}) {
    INFO(std::string(line));
    CHECK(census.find(line) != std::string::npos);
  }
}

TEST_CASE("validate_gpu: tables of functions are judged, and drawn beside the software half's") {
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  const Outcome outcome = run("--device all --quick --op hsqrt,htanh_approx --out " + out);
  INFO(outcome.output);
  CHECK(outcome.exit_code == 0);
  CHECK(programs::summary_of(out).at("device") == "all");
  const std::string functions = test::content_of(fs::path(out) / "functions.csv");
  for (const char* line : {"hsqrt,software half,65536,0,0,0,-0.4999", "hsqrt,GPU,65536,0,0,0,-0.4999",
                           "hsqrt,GPU packed,65536,0,0,0,-0.4999", "htanh_approx,GPU,65536,"})
    CHECK(functions.find(line) != std::string::npos);
  CHECK(test::content_of(fs::path(out) / "ulp_errors.gp").find("set multiplot layout 1,2") !=
        std::string::npos);
}

TEST_CASE("validate_gpu: a tensor-core instruction is held to the model") {
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  const Outcome outcome = run("--device cuda --quick --op mma_m16n8k8_f16_specials --out " + out);
  INFO(outcome.output);
  CHECK(outcome.exit_code == 0);
  CHECK(programs::summary_of(out).at("rows_exhaustive") == 1);
  CHECK(programs::summary_of(out).at("mismatches") == 0);
}
