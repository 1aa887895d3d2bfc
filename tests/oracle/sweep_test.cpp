#include "tests/oracle/sweep.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/temporary_directory.h"

namespace oracle {
namespace {

/// Shard n has n inputs and measures n / 3.
struct CountedSweep {
  std::atomic<int> runs = 0;
  Sweep sweep{.name = "counted", .shards = 100, .inputs = 4950, .run = [this](std::uint64_t shard) {
                ++runs;
                return Checked{.inputs = shard, .largest = static_cast<double>(shard) / 3};
              }};
};

TEST_CASE("a sweep runs all shards, once") {
  const test::TemporaryDirectory folder;
  CountedSweep counted;
  for (int time = 0; time < 2; ++time) {
    const Checked checked = run_sweep(counted.sweep, {.directory = folder.path()});
    CHECK(checked.inputs == 4950);
    CHECK(checked.largest == 99.0 / 3);
    CHECK(checked.difference == "");
    CHECK(counted.runs == 100);
  }
}

TEST_CASE("parts of a sweep add up, and sweeps of other names start anew") {
  const test::TemporaryDirectory folder;
  CountedSweep counted;
  CHECK(run_sweep(counted.sweep, {.directory = folder.path(), .part = 1, .parts = 3}).inputs == 1617);
  CHECK(counted.runs == 33);
  CHECK(run_sweep(counted.sweep, {.directory = folder.path()}).inputs == 4950);
  CHECK(counted.runs == 100);
  counted.sweep.name = "other";
  CHECK(run_sweep(counted.sweep, {.directory = folder.path()}).inputs == 4950);
  CHECK(counted.runs == 200);
}

TEST_CASE("a difference stops the sweep, and its shard is run again") {
  const test::TemporaryDirectory folder;
  CountedSweep counted;
  std::atomic<bool> differs = true;
  const Sweep sweep{.name = "counted", .shards = 100, .inputs = 4950, .run = [&](std::uint64_t shard) {
                      // The others wait for the wrong one, and then leave it time to stop them.
                      if (shard != 0) {
                        differs.wait(true);
                        std::this_thread::sleep_for(std::chrono::milliseconds(20));
                      }
                      Checked checked = counted.sweep.run(shard);
                      if (shard == 0) {
                        checked.difference = "1 is not 2";
                        differs = false;
                        differs.notify_all();
                      }
                      return checked;
                    }};
  CHECK(run_sweep(sweep, {.directory = folder.path()}).difference == "1 is not 2");
  CHECK(counted.runs < 100);
  CHECK(run_sweep(counted.sweep, {.directory = folder.path()}).inputs == 4950);
  CHECK(counted.runs == 101);
}

TEST_CASE("an exception is a difference") {
  const test::TemporaryDirectory folder;
  const Sweep sweep{.name = "thrown", .shards = 3, .inputs = 0, .run = [](std::uint64_t) -> Checked {
                      throw std::runtime_error("no digits left");
                    }};
  CHECK(run_sweep(sweep, {.directory = folder.path()}).difference == "no digits left");
}

TEST_CASE("a line that a kill has cut off does not count, nor does it spoil the next") {
  const test::TemporaryDirectory folder;
  CountedSweep counted;
  run_sweep(counted.sweep, {.directory = folder.path()});
  const std::filesystem::path file = std::filesystem::directory_iterator(folder.path())->path();
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 3);
  CHECK(run_sweep(counted.sweep, {.directory = folder.path()}).inputs == 4950);
  CHECK(counted.runs == 101);
  CHECK(run_sweep(counted.sweep, {.directory = folder.path()}).inputs == 4950);
  CHECK(counted.runs == 101);
}

TEST_CASE("the environment chooses the folder and the part") {
  setenv("HALFLAB_SWEEP_DIR", "/some/where", 1);
  setenv("HALFLAB_SWEEP_SHARDS", "3/64", 1);
  const SweepOptions options = sweep_options();
  CHECK(options.directory == "/some/where");
  CHECK(options.part == 3);
  CHECK(options.parts == 64);
  for (const char* wrong : {"", "3", "64/64", "0/0", "-1/4", "1/4x", "a/b"}) {
    setenv("HALFLAB_SWEEP_SHARDS", wrong, 1);
    CHECK_THROWS_AS(sweep_options(), std::invalid_argument);
  }
  unsetenv("HALFLAB_SWEEP_DIR");
  unsetenv("HALFLAB_SWEEP_SHARDS");
  CHECK(sweep_options().directory.filename() == "sweeps");
  CHECK(sweep_options().parts == 1);
}

}  // namespace
}  // namespace oracle
