/// validate_gpu as its users run it: what a run leaves, how it goes on, and what it refuses.

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/experiments/process.h"
#include "tests/experiments/programs.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using programs::Outcome;
using programs::run;
using test::contains;
using test::contents_of;
using test::TemporaryDirectory;

/// In front of a command: no CUDA device is to be seen.
constexpr const char* hidden_device = "env CUDA_VISIBLE_DEVICES= ";

/// What does not depend on when and how fast a run was.
std::map<std::string, std::string> lasting_contents(const std::string& directory) {
  std::map<std::string, std::string> files = contents_of(directory);
  CHECK(files.erase("manifest.json") == 1);
  CHECK(files.erase("timing.csv") == 1);
  return files;
}

}  // namespace

TEST_CASE("validate_gpu: the same bytes with 1 and 2 threads, and when it goes on with half the shards") {
  const TemporaryDirectory directory;
  const std::string one = directory / "one", two = directory / "two", on = directory / "on";
  const Outcome first = run("validate_gpu --device cpu --quick --threads 1 --out " + one);
  INFO(first.output);
  REQUIRE(first.exit_code == 0);
  CHECK(run("validate_gpu --device cpu --quick --threads 2 --out " + two).exit_code == 0);
  CHECK(run("validate_gpu --device cpu --quick --op hadd,hfma,half2ll_rz --out " + on).exit_code == 0);
  const Outcome continued = run("validate_gpu --device cpu --quick --out " + on);
  CHECK(continued.exit_code == 0);
  CHECK(continued.output.find("held already were not run again") != std::string::npos);
  const auto files = lasting_contents(one);
  CHECK(files == lasting_contents(two));
  CHECK(files == lasting_contents(on));
  for (const char* file : {"verdicts.csv", "counterexamples.csv", "functions.csv", "ulp_errors.csv",
                           "nan_census.csv", "summary.json", "shards.bin", "verdict.txt"})
    CHECK(files.contains(file));

  const nlohmann::json summary = programs::summary_of(one);
  for (const char* key : {"device", "rows", "rows_run", "rows_not_run", "rows_failed", "rows_exhaustive",
                          "inputs", "mismatches", "documented_deviations", "other_nans",
                          "not_correctly_rounded", "shards_wanted", "shards_finished", "cuda_fp16.h"})
    CHECK(summary.contains(key));
  CHECK(summary.at("device") == "cpu");
  CHECK(summary.at("mismatches") == 0);
  CHECK(summary.at("shards_wanted") == summary.at("shards_finished"));
  CHECK(summary.at("rows_not_run") > 100);
  CHECK(summary.at("rows_run").get<int>() + summary.at("rows_not_run").get<int>() == summary.at("rows"));
  CHECK(first.output.find("needs a GPU") != std::string::npos);
}

TEST_CASE("validate_gpu: an interrupted sweep keeps its shards, and the next run needs not run them again") {
  const TemporaryDirectory directory;
  const std::string out = directory / "out", fresh = directory / "fresh";
  const process::Process sweep("validate_gpu --device cpu --exhaustive --op hadd --out " + out,
                               directory / "log");
  while (sweep.is_running() && !fs::exists(fs::path(out) / "shards.bin")) std::this_thread::sleep_for(1ms);
  sweep.send(SIGINT);
  const process::Outcome interrupted = sweep.wait();
  INFO(interrupted.output);
  CHECK(interrupted.exit_code == 130);
  CHECK(interrupted.output.find("the finished shards are kept") != std::string::npos);
  CHECK(contents_of(out).size() == 1);
  const Outcome continued = run("validate_gpu --device cpu --quick --op hadd --out " + out);
  CHECK(continued.exit_code == 0);
  CHECK(run("validate_gpu --device cpu --quick --op hadd --out " + fresh).exit_code == 0);
  auto files = lasting_contents(out), others = lasting_contents(fresh);
  files.erase("shards.bin");  // holds those of the longer sweep, too
  others.erase("shards.bin");
  CHECK(files == others);
}

TEST_CASE(
    "validate_gpu: --help shows an example, --list operations every one, --help-outputs the summary keys") {
  const std::pair<const char*, std::vector<const char*>> parts[] = {
      {"--help", {"Example:\n  validate_gpu --op ", "fused multiply-add", "--list"}},
      {"--list operations",
       {"hadd_sat ", "ull2half_ru ", "mma_m16n8k16_f16_one_product ", "recorded_steps "}},
      {"--help-outputs", {"rows_not_run"}}};
  for (const auto& [option, texts] : parts) {
    const Outcome printed = run(std::string("validate_gpu ") + option);
    CHECK(printed.exit_code == 0);
    for (const char* const text : texts)
      CHECK_MESSAGE(printed.output.find(text) != std::string::npos, option, " ", text);
  }
}

TEST_CASE("validate_gpu: families are chosen by the names that the verdict has for them") {
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  const Outcome chosen =
      run("validate_gpu --device cpu --quick --op 'minimum, maximum,hneg,functions,tensor core' --out " + out,
          "env -u HALFLAB_DATA_DIR ");
  INFO(chosen.output);
  REQUIRE(chosen.exit_code == 0);
  const std::string verdicts = test::content_of(fs::path(out) / "verdicts.csv");
  for (const char* line : {"\nhmin_nan,\"minimum, maximum\",software half,",
                           "\nhneg,sign and class,software half,", "\nhtanh_approx,functions,GPU,",
                           "\nmma_m16n8k16_f16_one_product,tensor core,GPU,tensor core,tensor-core model,",
                           "\nmma_m16n8k16_f16_permutation,tensor core,GPU,tensor core,the same instruction,",
                           "tensor core,recorded steps,"})
    CHECK_MESSAGE(contains(verdicts, line), line);
  for (const char* line : {"\nhadd,", "\nhabs,"}) CHECK_MESSAGE(!contains(verdicts, line), line);
  CHECK(contains(chosen.output, "  65,536  "));  // of hneg
  CHECK(contains(chosen.output, "  2^22  "));    // of the minima and maxima
  CHECK(contains(chosen.output, "largest error, ulp              at operand  wrong"));
  const std::string script = test::content_of(fs::path(out) / "ulp_errors.gp");
  CHECK(contains(script, "set xlabel 'operand (by exponent, both signs)'"));
  CHECK(contains(script, "set ylabel 'ulp'"));
}

TEST_CASE("validate_gpu: the verdict names the places of rows that ran or were asked for, and no others") {
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  const auto verdict_of = [&](const std::string& operation) {
    const Outcome outcome = run("validate_gpu --quick --restart --op " + operation + " --out " + out,
                                "env -u HALFLAB_DATA_DIR CUDA_VISIBLE_DEVICES= ");
    INFO(outcome.output);
    CHECK(outcome.exit_code == 0);
    return outcome.output;
  };
  const std::string cpu = "On the CPU, ", gpu = "Rows on a GPU did not run: ";
  const std::string both = verdict_of("hadd"), device = verdict_of("mma_m16n8k16_f16_one_product"),
                    recorded = verdict_of("recorded_steps");
  CHECK(contains(both, cpu));
  CHECK(contains(both, gpu));
  CHECK(!contains(device, cpu));
  CHECK(contains(device, gpu));
  CHECK(!contains(recorded, cpu));
  CHECK(!contains(recorded, gpu));
}

TEST_CASE("validate_gpu: shards of another machine are compared, and a difference is exit code 1") {
  const TemporaryDirectory directory;
  const std::string ours = directory / "ours", theirs = directory / "theirs.bin";
  const std::string command = "validate_gpu --device cpu --quick --op hrcp --out " + ours;
  REQUIRE(run(command).exit_code == 0);
  fs::copy_file(fs::path(ours) / "shards.bin", theirs);
  CHECK(run(command + " --compare " + theirs).exit_code == 0);
  CHECK(programs::summary_of(ours).at("shards_compared") == 1);
  std::string bytes = test::content_of(theirs);
  bytes[bytes.size() - 12] = static_cast<char>(bytes[bytes.size() - 12] ^ 1);  // the last digest
  std::ofstream(theirs, std::ios::binary) << bytes;
  const Outcome differs = run(command + " --compare " + theirs);
  INFO(differs.output);
  CHECK(differs.exit_code == 1);
  CHECK(differs.output.find("1 of 1 shards differ") != std::string::npos);
  CHECK(differs.output.find("hrcp, software half, shard 0") != std::string::npos);
}

TEST_CASE("validate_gpu: what it refuses is one line and exit code 2, and nothing is written") {
  const TemporaryDirectory directory;
  const std::string out = directory / "never", other = directory / "other.bin";
  std::ofstream(other) << "halflab shards 0\n";
  const auto refuses = [&](const std::string& arguments, const std::string& must_name) {
    const Outcome outcome = run("validate_gpu --quick " + arguments + " --out " + out, hidden_device);
    INFO(arguments, "\n", outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.output.find(must_name) != std::string::npos);
    CHECK(std::ranges::count(outcome.output, '\n') == 1);
  };
  refuses("--op hadf", "did you mean 'hadd'? allowed: all, families, or names of --list operations");
  refuses("--op hadd,arithmetik", "unknown operation 'arithmetik'; did you mean 'arithmetic'?");
  refuses("--op 'minimum, maxima'", "unknown operation 'minimum'");
  refuses("--op hadd,", "unknown operation ''");
  refuses("--op ''", "--op");
  refuses("--device gpu", "'gpu' is not allowed; allowed: auto, cpu, cuda, all");
  refuses("--budget -1", "--budget");
  refuses("--op hfma --device cpu --fma48", "--fma48: is of rows on a GPU, and none run on one (--device)");
  refuses("--gpu-samples 0", "--gpu-samples");
  refuses("--samples 0", "--samples");
  refuses("--compare " + other, "begins with 'halflab shards 2'; give that of a run of this version");
  CHECK(!fs::exists(out));
  fs::create_directory(out);
  fs::copy_file(other, fs::path(out) / "shards.bin");
  refuses("", "begins with 'halflab shards 2'; --restart begins anew, another --out keeps it");
  CHECK(contents_of(out).size() == 1);
  CHECK(run("validate_gpu --device cpu --quick --restart --op hrcp --out " + out).exit_code == 0);
}

TEST_CASE("validate_gpu: without a device that can run them rows on a GPU are refused in one line") {
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  const Outcome automatic = run("validate_gpu --quick --op hrcp --out " + out, hidden_device);
  INFO(automatic.output);
  CHECK(automatic.exit_code == 0);
  CHECK(automatic.output.find("Rows on a GPU did not run: no CUDA device: ") != std::string::npos);
  CHECK(nlohmann::json::parse(test::content_of(fs::path(out) / "manifest.json")).at("gpu").is_null());
  for (const char* device : {"cuda", "all"}) {
    const std::string never = directory / "never";
    const Outcome refused = run(
        "validate_gpu --quick --op hrcp --device " + std::string(device) + " --out " + never, hidden_device);
    INFO(refused.output);
    CHECK(refused.exit_code == 2);
    CHECK(refused.output.find("no CUDA device: ") != std::string::npos);
    CHECK(std::ranges::count(refused.output, '\n') == 1);
    CHECK(!fs::exists(never));
  }
}

TEST_CASE("validate_gpu: a budget ends a run early, with a shard file that the next run goes on with") {
  const TemporaryDirectory directory;
  const std::string out = directory / "out", fresh = directory / "fresh";
  const std::string command = "validate_gpu --device cpu --op hadd,hsub --samples 16777216 --out ";
  const Outcome first = run(command + out + " --budget 0.05");
  INFO(first.output);
  CHECK(first.exit_code == 0);
  CHECK(first.output.find("the next run goes on") != std::string::npos);
  const nlohmann::json summary = programs::summary_of(out);
  CHECK(summary.at("shards_finished").get<int>() < summary.at("shards_wanted").get<int>());
  CHECK(run(command + out).exit_code == 0);
  CHECK(run(command + fresh).exit_code == 0);
  CHECK(lasting_contents(out) == lasting_contents(fresh));
}

TEST_CASE("validate_gpu: --exhaustive goes through whole domains, recorded steps need their folder") {
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  CHECK(run("validate_gpu --device cpu --exhaustive --op hsqrt,hrint,half2int_rz --out " + out).exit_code ==
        0);
  const nlohmann::json summary = programs::summary_of(out);
  CHECK(summary.at("rows_exhaustive") == summary.at("rows_run"));
  const Outcome without =
      run("validate_gpu --device cpu --op recorded_steps --out " + out, "env -u HALFLAB_DATA_DIR ");
  CHECK(without.exit_code == 0);
  CHECK(without.output.find("needs HALFLAB_DATA_DIR") != std::string::npos);
  CHECK(programs::summary_of(out).at("rows_not_run") == 6);
}
