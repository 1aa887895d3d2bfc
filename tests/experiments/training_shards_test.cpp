/// The binary `training` as several jobs that share a sweep.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <list>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/experiments/training_process.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::contains;
using test::TemporaryDirectory;
using training::check_equal;
using training::Outcome;
using training::Process;
using training::results_of;
using training::run;

/// Six cells of a few hundredths of a second.
const std::string sweep =
    "--sweep --model mlp:hidden1=16:hidden2=8 --policy fp32,amp,O2 --seeds 2 --batch 8 --steps 40 "
    "--checkpoint-every 3 --threads 1 ";
const std::string cell = "mlp+hidden1=16+hidden2=8-amp-dynamic-1";

std::string shard(int index, int count) {
  return sweep + "--shard " + std::to_string(index) + "/" + std::to_string(count);
}

void require_run(const std::string& arguments, const fs::path& out) {
  const Outcome outcome = run(arguments, out);
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
}

void set_age(const fs::path& file, int seconds) {
  const std::timespec then{std::time(nullptr) - seconds, 0};
  const std::timespec times[2] = {then, then};
  REQUIRE(::utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
}

/// The claim of a job on another host; its file.
fs::path put_foreign_claim(const fs::path& out, const std::string& name) {
  const fs::path folder = out / "claims" / name;
  fs::create_directories(folder);
  std::ofstream(folder / "0123.json")
      << R"({"host": "node3", "job": "Slurm job 7_2", "process": 1, "process_space": "elsewhere"})";
  return folder / "0123.json";
}

void replace_in(const fs::path& file, const std::string& from, const std::string& to) {
  std::string text = test::content_of(file);
  const std::size_t place = text.find(from);
  REQUIRE(place != std::string::npos);
  std::ofstream(file, std::ios::binary) << text.replace(place, from.size(), to);
}

/// The folders of two shards, and all that is said of merging them as they then are.
struct TwoShards {
  TemporaryDirectory directory;

  TwoShards() {
    require_run(shard(1, 2), directory / "a");
    require_run(shard(2, 2), directory / "b");
  }
  /// The folder that has the cell.
  fs::path holder() const {
    return fs::exists(directory / "a" / "cells" / cell) ? directory / "a" : directory / "b";
  }
  std::string merged(const std::string& more = "") const {
    const Outcome outcome =
        run(sweep + more + "--merge " + (directory / "a").string() + " " + (directory / "b").string(),
            directory / "out");
    CHECK(outcome.exit_code == 2);
    CHECK(std::ranges::count(outcome.output, '\n') == 1);
    CHECK(!fs::exists(directory / "out"));
    return outcome.output;
  }
};

}  // namespace

TEST_CASE("shards: however a sweep was cut, merged it has the bytes of one that was not") {
  const TemporaryDirectory directory;
  require_run(sweep, directory / "whole");
  const training::Files whole = results_of(directory / "whole");
  CHECK(!fs::exists(directory / "whole" / "claims"));
  for (const int count : {1, 2, 4, 9}) {
    std::string folders;
    for (int index = 1; index <= count; ++index) {
      const fs::path out = directory / (std::to_string(index) + "-of-" + std::to_string(count));
      require_run(shard(index, count), out);
      CHECK(!fs::exists(out / "manifest.json"));
      if (fs::exists(out / "cells")) folders += " " + out.string();
    }
    const fs::path merged = directory / ("merged-" + std::to_string(count));
    require_run(sweep + "--merge" + folders, merged);
    check_equal(results_of(merged), whole);
  }
}

TEST_CASE("shards: --cells names the cells of a sweep and of each shard, and makes none") {
  const TemporaryDirectory directory;
  const auto cells = [&](const std::string& arguments) {
    const Outcome outcome = run(arguments + " --cells", directory / "never");
    CHECK(outcome.exit_code == 0);
    CHECK(!fs::exists(directory / "never"));
    std::istringstream lines(outcome.output);
    return std::vector<std::string>(std::istream_iterator<std::string>(lines), {});
  };
  const std::vector<std::string> all = cells(sweep);
  REQUIRE(all.size() == 6);
  CHECK(all[3] == cell);
  CHECK(cells(shard(2, 4)) == std::vector{all[1], all[5]});
  CHECK(cells(shard(7, 9)).empty());
}

TEST_CASE("shards: jobs in one folder do each other no harm, those of the same shard neither") {
  const TemporaryDirectory directory;
  require_run(sweep, directory / "whole");
  const fs::path out = directory / "shared";
  std::list<Process> jobs;
  int log = 0;
  for (const char* which : {"1/2", "2/2", "1/2", "1/1"})
    jobs.emplace_back("training --out " + out.string() + " " + sweep + "--shard " + which,
                      directory / ("log-" + std::to_string(++log)));
  for (const Process& job : jobs) {
    const Outcome outcome = job.wait();
    INFO(outcome.output);
    CHECK(outcome.exit_code == 0);
  }
  CHECK(!fs::exists(out / "claims"));
  require_run(sweep + "--merge " + out.string(), out);
  check_equal(results_of(out), results_of(directory / "whole"));
}

TEST_CASE("shards: what a killed job had claimed another takes over and goes on from its checkpoints") {
  const TemporaryDirectory directory;
  const std::string arguments =
      "--sweep --model mlp:hidden1=32 --policy fp32,amp --batch 8 --steps 300 --checkpoint-every 2 --threads "
      "1 ";
  require_run(arguments, directory / "whole");
  const fs::path out = directory / "killed";
  int kills = 0;
  for (auto patience = 80ms;; patience += 60ms) {
    const Process job = training::start(arguments + "--shard 1/1", out);
    std::this_thread::sleep_for(patience);
    job.send(SIGKILL);
    if (job.wait().exit_code == 0) break;
    if (fs::exists(out / "claims")) ++kills;
  }
  CHECK(kills >= 2);
  CHECK(!fs::exists(out / "claims"));
  require_run(arguments + "--merge " + out.string(), out);
  check_equal(results_of(out), results_of(directory / "whole"));
}

TEST_CASE("shards: a job waits for a cell of another host, and takes it over once its claim is not renewed") {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out", claim = put_foreign_claim(out, cell);
  const Process job = training::start(shard(1, 1), out);
  const auto is_alone = [&] {
    const auto finished = std::ranges::count_if(fs::directory_iterator(out / "cells"), [](const auto& entry) {
      return fs::exists(entry.path() / "manifest.json");
    });
    return finished == 5;
  };
  while (job.is_running() && (!fs::exists(out / "cells") || !is_alone())) std::this_thread::sleep_for(5ms);
  std::this_thread::sleep_for(1s);
  CHECK(job.is_running());
  CHECK(!fs::exists(out / "cells" / cell));
  set_age(claim, 300);
  const Outcome outcome = job.wait();
  INFO(outcome.output);
  CHECK(outcome.exit_code == 0);
  CHECK(contains(outcome.output, "a cell is made elsewhere, by "));
  CHECK(contains(outcome.output, "waiting until done or given up: '" + std::string(cell) + "'"));
  CHECK(fs::exists(out / "cells" / cell / "manifest.json"));
  CHECK(!fs::exists(out / "claims"));
}

TEST_CASE("shards: a job waits for a cell that a stopped process holds, and makes the others") {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out", stopped = out / "cells" / cell;
  fs::create_directories(stopped);
  const int lock = ::open(stopped.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(::flock(lock, LOCK_EX | LOCK_NB) == 0);
  const Process job = training::start(shard(1, 1), out);
  const auto finished = [&] {
    return std::ranges::count_if(fs::directory_iterator(out / "cells"), [](const auto& entry) {
      return fs::exists(entry.path() / "manifest.json");
    });
  };
  while (job.is_running() && finished() < 5) std::this_thread::sleep_for(5ms);
  std::this_thread::sleep_for(500ms);
  CHECK(job.is_running());
  CHECK(finished() == 5);
  ::close(lock);
  const Outcome outcome = job.wait();
  INFO(outcome.output);
  CHECK(outcome.exit_code == 0);
  CHECK(finished() == 6);
}

TEST_CASE("shards: merging into a folder of a shard may be repeated, and a folder is named once") {
  const TwoShards shards;
  const fs::path a = shards.directory / "a", b = shards.directory / "b";
  const std::string merge = sweep + "--merge " + a.string() + " " + b.string();
  require_run(merge, a);
  const training::Files merged = results_of(a);
  require_run(merge, a);
  check_equal(results_of(a), merged);
  const Outcome twice = run(merge + " " + (a / ".").string(), shards.directory / "out");
  CHECK(twice.exit_code == 2);
  CHECK(contains(twice.output,
                 "--merge: folder '" + a.string() + "' is given twice; allowed: each folder once"));
}

TEST_CASE("shards: merging refuses gaps and copies that differ, and says which") {
  const TwoShards shards;
  const fs::path a = shards.directory / "a", b = shards.directory / "b";
  const fs::path elsewhere = shards.directory / "elsewhere";
  fs::rename(shards.holder() / "cells" / cell, elsewhere);
  CHECK(contains(shards.merged(), "--merge: 1 of 6 cells are in none of "));
  CHECK(contains(shards.merged(), ": '" + cell + "'; allowed: all cells of the sweep"));
  for (const fs::path& folder : {a, b})
    fs::copy(elsewhere, folder / "cells" / cell, fs::copy_options::recursive);
  replace_in(b / "cells" / cell / "manifest.json", "\"skips.csv\": \"", "\"./skips.csv\": \"");
  CHECK(contains(shards.merged(), "cell '" + cell + "' has other files in '" + b.string() + "' than in '" +
                                      a.string() + "'; allowed: each cell once, or the same copies of it"));
}

TEST_CASE("shards: merging refuses mixed revisions, other runs, damage, and what is still being made") {
  const TwoShards shards;
  const fs::path holder = shards.holder(), manifest = holder / "cells" / cell / "manifest.json";
  const std::string named = "cell '" + cell + "' in '" + holder.string() + "' ";
  const std::string original = test::content_of(manifest);
  replace_in(manifest, R"("halflab": ")", R"("halflab": "0.0.1 )");
  CHECK(contains(shards.merged(), named + "is of another run: its halflab is '0.0.1 "));
  CHECK(contains(shards.merged(), "allowed: cells of this sweep, and of one revision"));
  std::ofstream(manifest, std::ios::binary) << original;
  CHECK(contains(shards.merged("--lr 0.25 "), "its learning rate is '0.05', and here '0.25'"));

  std::ofstream(manifest.parent_path() / "steps.csv", std::ios::app) << "more\n";
  CHECK(
      contains(shards.merged(), named + "is damaged: file 'steps.csv' is missing or not what its run wrote"));

  put_foreign_claim(holder, cell);
  CHECK(contains(shards.merged(),
                 named + "is still being made by Slurm job 7_2 on node3; allowed: once all are done"));
}

TEST_CASE("shards: merging replaces no cell of another run in --out, and none that is being made there") {
  const TwoShards shards;
  const fs::path a = shards.directory / "a", b = shards.directory / "b", out = shards.directory / "full";
  const std::string merge = sweep + "--merge " + a.string() + " " + b.string();
  const auto refused = [&] {
    const Outcome outcome = run(merge, out);
    CHECK(outcome.exit_code == 2);
    CHECK(std::ranges::count(outcome.output, '\n') == 1);
    return outcome.output;
  };
  const std::string in_out = "cell '" + cell + "' in --out '" + out.string() + "' ";
  const fs::path target = out / "cells" / cell;

  require_run(sweep + "--lr 0.25", out);
  const training::Files other = results_of(out);
  const std::string first = "mlp+hidden1=16+hidden2=8-fp32-none-0";
  CHECK(contains(refused(), "--merge: cell '" + first + "' in --out '" + out.string() +
                                "' is of another run: its learning rate is '0.25', and here '0.05'; "
                                "allowed: another --out, or to remove the cell"));
  check_equal(results_of(out), other);

  fs::remove_all(out);
  require_run(merge, out);
  replace_in(target / "manifest.json", "\"skips.csv\": \"", "\"./skips.csv\": \"");
  CHECK(contains(refused(), "cell '" + cell + "' has other files in --out '" + out.string() + "' than in '" +
                                shards.holder().string() + "'"));

  fs::remove_all(out);
  const fs::path claim = put_foreign_claim(out, cell);
  fs::create_directories(target);
  std::ofstream(target / "steps.partial.csv") << "step\n";
  CHECK(
      contains(refused(), "cell '" + cell + "' in '" + out.string() +
                              "' is still being made by Slurm job 7_2 on node3; allowed: once all are done"));
  CHECK(fs::exists(target / "steps.partial.csv"));
  CHECK(!fs::exists(out / "cells" / first));
  set_age(claim, 300);
  require_run(merge, out);
  CHECK(!fs::exists(target / "steps.partial.csv"));
}

TEST_CASE("shards: merging keeps the checkpoints that another run has in --out") {
  const TwoShards shards;
  const fs::path out = shards.directory / "full", checkpoints = out / "cells" / cell;
  const Process job = training::start(
      "--sweep --model mlp:hidden1=16:hidden2=8 --policy amp --seed 1 --lr 0.25 --batch 8 --steps 100000 "
      "--checkpoint-every 3 --threads 1",
      out);
  const auto has_checkpoint = [&] {
    return fs::exists(checkpoints) &&
           std::ranges::any_of(fs::directory_iterator(checkpoints), [](const auto& entry) {
             return entry.path().filename().string().starts_with("checkpoint-") &&
                    entry.path().extension().empty();
           });
  };
  while (job.is_running() && !has_checkpoint()) std::this_thread::sleep_for(5ms);
  job.send(SIGKILL);
  job.wait();
  REQUIRE(has_checkpoint());
  const Outcome outcome = run(
      sweep + "--merge " + (shards.directory / "a").string() + " " + (shards.directory / "b").string(), out);
  CHECK(outcome.exit_code == 2);
  CHECK(std::ranges::count(outcome.output, '\n') == 1);
  CHECK(contains(outcome.output, "--merge: checkpoint '" + checkpoints.string()));
  CHECK(
      contains(outcome.output, "is of a run with learning rate '0.25', and this one has '0.05'; allowed: "));
  CHECK(has_checkpoint());
}

TEST_CASE("shards: bad usage is one line and exit code 2") {
  const TemporaryDirectory directory;
  const std::pair<std::string, const char*> wrong[] = {
      {"--shard 1/2", "must come with --sweep"},
      {"--merge", "must come with --sweep"},
      {"--cells", "must come with --sweep"},
      {sweep + "--cells --merge x", "must be one of them"},
      {sweep + "--cells --optimizer none", "--optimizer: 'none' is not allowed"},
      {sweep + "--shard 3/2", "must be from 1/2 to 2/2"},
      {sweep + "--shard 0/2", "must be from 1/2 to 2/2"},
      {sweep + "--shard 1/0", "--shard: '1/0' is given"},
      {sweep + "--shard 2", "must be such as 2/4"},
      {sweep + "--shard 1/2x", "must be such as 2/4"},
      {sweep + "--shard 2/18446744073709551615", "must be of at most 2147483648 parts"},
      {sweep + "--shard 1/2 --merge x", "must be one of them"},
      {sweep + "--merge", "no folder is given"},
      {sweep + "--merge /no/such/folder", "'/no/such/folder' holds no cells"},
      {sweep + "stray", "'stray' is given; folders must come with --merge"},
  };
  for (const auto& [arguments, must_say] : wrong) {
    const Outcome outcome = run(arguments, directory / "never");
    INFO(arguments, "\n", outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(contains(outcome.output, must_say));
    CHECK(std::ranges::count(outcome.output, '\n') == 1);
    CHECK(!fs::exists(directory / "never"));
  }
}
