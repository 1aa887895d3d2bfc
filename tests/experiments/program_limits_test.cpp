/// What all experiment binaries do at their limits: special files, files and memory that are too large, names that
/// a terminal would obey.

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "tests/experiments/programs.h"
#include "tests/experiments/training_process.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

namespace {

namespace fs = std::filesystem;
using programs::Outcome;
using programs::run;
using test::contains;
using test::TemporaryDirectory;

// The address sanitizer reserves terabytes of addresses.
#ifdef __SANITIZE_ADDRESS__
constexpr bool addresses_can_be_limited = false;
#else
constexpr bool addresses_can_be_limited = true;
#endif

/// A hang or a large allocation ends as a failure of the test.
const std::string limited = addresses_can_be_limited ? "ulimit -v 4000000; timeout 300 " : "timeout 300 ";

/// The one line that a command is refused with.
std::string refusal(const std::string& command, const std::string& wrapper = limited) {
  const Outcome outcome = run(command, wrapper);
  INFO(command, "\n", outcome.output);
  CHECK(outcome.exit_code == 2);
  CHECK(std::ranges::count(outcome.output, '\n') == 1);
  return outcome.output;
}

}  // namespace

TEST_CASE("programs: FIFOs, devices and directories in the place of files are refused at once") {
  const TemporaryDirectory directory;
  const std::string fifo = directory / "fifo.toml", out = " --out " + (directory / "never").string();
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  for (const std::string command :
       {"training --quick --config ", "memory_anatomy --quick --network ",
        "training --quick --model lstm --data ", "explain_gemm --b b.npy --d d.npy --a ",
        "validate_gpu --quick --compare "}) {
    CHECK(contains(refusal(command + fifo + out), "it is a FIFO, a regular file is needed"));
    if (!contains(command, "--network"))
      CHECK(contains(refusal(command + "/dev/zero" + out), "it is a device, a regular file is needed"));
  }
  CHECK(contains(refusal("training --config /tmp" + out), "it is a directory, a regular file is needed"));
  CHECK(!fs::exists(directory / "never"));
}

TEST_CASE("programs: keys of tens of thousands of parts are refused in a short line") {
  const TemporaryDirectory directory;
  const std::string file = directory / "deep.toml", out = " --out " + (directory / "never").string();
  std::ofstream(file) << [] {
    std::string key = "a";
    for (int i = 0; i < 40'000; ++i) key += ".a";
    return key + " = 1\n";
  }();
  for (const char* command : {"training --config ", "memory_anatomy --network "}) {
    const std::string line = refusal(command + file + out);
    CHECK(contains(line, file + ":1: a key of more than 16 parts is not allowed"));
    CHECK(line.size() < 300);
  }
  std::ofstream(file) << std::string(60'000, 'k') << " = 1\n";
  CHECK(refusal("training --config " + file + out).size() <= 2000 + std::string("training: \n").size());
}

TEST_CASE("programs: a run that does not fit into memory is refused before its first step") {
  if (!addresses_can_be_limited) {
    MESSAGE("skipped: the address sanitizer leaves no limit of addresses to set");
    return;
  }
  const TemporaryDirectory directory;
  const std::string out = " --out " + (directory / "never").string();
  for (const char* large : {"cnn:channels=4096", "mlp:hidden1=65536:hidden2=65536"}) {
    const std::string line =
        refusal("training --quick --model " + std::string(large) + out, "ulimit -v 6000000; timeout 300 ");
    CHECK(contains(line, std::string("training: ") + large + " under amp needs "));
    CHECK(contains(line, " GiB for parameters, their gradients and the optimizer alone, and "));
    CHECK(contains(line, " of memory are left by ulimit -v; allowed: a smaller network"));
  }
  const std::string batch = refusal("training --quick --model mlp:hidden1=2048 --batch 65536" + out,
                                    "ulimit -v 1500000; timeout 300 ");
  const std::string allowed = "allowed: --batch up to ";
  REQUIRE(contains(batch, allowed));
  const int fits = std::stoi(batch.substr(batch.find(allowed) + allowed.size()));
  CHECK(fits > 1000);
  CHECK(fits < 65536);
  CHECK(contains(refusal("training --quick --sweep --threads 4 --policy fp32,amp --seeds 2 --model "
                         "mlp:hidden1=16384:hidden2=2048" +
                             out,
                         "ulimit -v 1500000; timeout 300 "),
                 "4 runs of mlp:hidden1=16384:hidden2=2048 under fp32, side by side, need "));
  CHECK(!fs::exists(directory / "never"));
}

TEST_CASE("programs: ranks for which no threads can be started are one line, and nobody waits for them") {
  if (!addresses_can_be_limited) {
    MESSAGE("skipped: the address sanitizer leaves no limit of addresses to set");
    return;
  }
  const TemporaryDirectory directory;
  const std::string line =
      refusal("training --model cnn --ranks 512 --batch 512 --sync-batch-norm --steps 1 --threads 1 --out " +
                  (directory / "never").string(),
              "ulimit -v 2500000; timeout 60 ");
  CHECK(
      contains(line, "training: 512 ranks that gather need as many threads at once, and the system starts "));
}

TEST_CASE("programs: a limit on the size of files is one line, and the same command goes on from there") {
  const TemporaryDirectory directory;
  const std::string command =
      "training --model mlp:hidden1=8:hidden2=8 --batch 4 --steps 400 --checkpoint-every 50 --out ";
  const std::string out = directory / "out", whole = directory / "whole";
  for (const char* kib : {"4", "40"}) {
    const std::string line = refusal(command + out, "ulimit -f " + std::string(kib) + "; timeout 60 ");
    CHECK(contains(line, "cannot be written (File too large)"));
    CHECK(!fs::exists(fs::path(out) / "summary.json"));
  }
  CHECK(run(command + out).exit_code == 0);
  CHECK(run(command + whole).exit_code == 0);
  for (const auto& [name, content] : test::contents_of(whole)) {
    INFO(name);
    if (fs::path(name).filename() != "manifest.json") CHECK(test::contents_of(out)[name] == content);
  }
}

TEST_CASE("programs: a hang-up leaves the directory as an interrupt does") {
  const TemporaryDirectory directory;
  const process::Process process("gradient_histogram --steps 100000 --out " + (directory / "out").string(),
                                 directory / "log");
  while (process.is_running() && !fs::exists(directory / "out" / ".partial"))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  process.send(SIGHUP);
  const process::Outcome outcome = process.wait();
  CHECK(outcome.exit_code == 130);
  CHECK(outcome.output == "gradient_histogram: interrupted; nothing was written\n");
  CHECK(!fs::exists(directory / "out"));
}

TEST_CASE("programs: names with control characters are shown, not obeyed") {
  const TemporaryDirectory directory;
  const std::string out = " --out " + (directory / "never").string();
  const std::string line = refusal("training --model $(printf 'mlp\\033[31m\\a')" + out);
  CHECK(contains(line, "'mlp\\x1b[31m\\x07'"));
  std::ofstream(directory / "config.toml") << "\"st\\u001b[2Jeps\" = 1\n";
  CHECK(
      contains(refusal("training --config " + (directory / "config.toml").string() + out), "st\\x1b[2Jeps"));
}

TEST_CASE("programs: rates and seeds beyond what can be computed with are refused") {
  const TemporaryDirectory directory;
  const std::string out = " --out " + (directory / "never").string();
  CHECK(contains(refusal("training --quick --lr 1e-320" + out),
                 "--lr: '1e-320' is not allowed; must be a number above 0"));
  CHECK(contains(
      refusal("training --quick --optimizer sgd:learning_rate=1e-320" + out),
      "learning_rate = 1e-320 is not allowed; allowed: numbers in (0, inf) after rounding to binary32"));
  CHECK(contains(refusal("training --sweep --quick --seed 18446744073709551615 --seeds 2" + out),
                 "--seed: '18446744073709551615' is not allowed with --seeds 2"));
  CHECK(!fs::exists(directory / "never"));
}

TEST_CASE("programs: a report does not take the place of a file of its run") {
  const TemporaryDirectory directory;
  const std::string run_directory = directory / "run";
  REQUIRE(run("training --quick " + programs::small + " --out " + run_directory).exit_code == 0);
  const std::map<std::string, std::string> before = test::contents_of(run_directory);
  for (const char* file : {"verdict.txt", "manifest.json", "../run/steps.csv"})
    CHECK(contains(refusal("report --out " + run_directory + "/" + file + " " + run_directory),
                   "is a file of the run itself"));
  CHECK(contains(refusal("report --out " + run_directory + "/run/summary.json " + run_directory),
                 "lies in a run within"));
  CHECK(test::contents_of(run_directory) == before);
  CHECK(run("report --out " + run_directory + "/page.html " + run_directory).exit_code == 0);
}

TEST_CASE("programs: a standard output that is full is an error, whatever was printed") {
  const TemporaryDirectory directory;
  for (const fs::directory_entry& program : fs::directory_iterator(HALFLAB_BINARY_DIRECTORY)) {
    const std::string name = program.path().filename().string();
    if (contains(name, "validate_cpu_")) continue;  // it answers validate_cpu, and prints nothing
    INFO(name);
    CHECK(run(name + " --help >/dev/full").exit_code != 0);
  }
  for (const std::string& command :
       {"formats --quick --out " + (directory / "out").string(), std::string("halflab show 0.1"),
        std::string("training --list models")}) {
    const Outcome outcome =
        programs::run_command("(" HALFLAB_BINARY_DIRECTORY "/" + command + " >/dev/full)");
    INFO(command, outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(contains(outcome.output, "the standard output cannot be written"));
    CHECK(std::ranges::count(outcome.output, '\n') == 1);
  }
}
