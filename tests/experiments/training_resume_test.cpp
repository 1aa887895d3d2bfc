/// The binary `training`, killed or damaged, goes on where it stopped.

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/experiments/programs.h"
#include "tests/experiments/training_process.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::contains;
using test::content_of;
using test::TemporaryDirectory;
using training::check_equal;
using training::Files;
using training::json_of;
using training::Outcome;
using training::Process;
using training::results_of;
using training::run;

/// Checkpoints of the one run in `out`, the newest last.
std::vector<fs::path> checkpoints_in(const fs::path& out) {
  std::vector<fs::path> files;
  std::error_code none_yet;
  for (const fs::directory_entry& entry : fs::directory_iterator(out / "run", none_yet)) {
    if (entry.path().filename().string().starts_with("checkpoint-")) files.push_back(entry.path());
  }
  std::ranges::sort(files, {}, [](const fs::path& file) {
    return std::pair(file.string().size(), file.string());  // checkpoint-90 before checkpoint-100
  });
  return files;
}

int steps_of(const fs::path& checkpoint) {
  return std::stoi(checkpoint.filename().string().substr(std::string("checkpoint-").size()));
}

/// Starts a run and kills it once it has written two checkpoints, the newer one after that many steps.
void leave_unfinished(const std::string& arguments, const fs::path& out, int steps = 0) {
  const Process process = training::start(arguments, out);
  const auto is_far_enough = [&] {
    const std::vector<fs::path> checkpoints = checkpoints_in(out);
    return checkpoints.size() >= 2 && steps_of(checkpoints.back()) >= steps;
  };
  while (process.is_running() && !is_far_enough()) std::this_thread::sleep_for(1ms);
  process.send(SIGKILL);
  REQUIRE(process.wait().exit_code == -SIGKILL);
  REQUIRE(checkpoints_in(out).size() >= 2);
}

const std::string small =
    "--model mlp:hidden1=32:hidden2=16 --batch 16 --steps 500 --checkpoint-every 7 --twin-every 13 "
    "--scalers dynamic:growth_interval=9 --schedule cosine:warmup_steps=20 ";

}  // namespace

TEST_CASE("training: killed again and again, at any moment, a run ends with the bytes of one that was not") {
  const TemporaryDirectory directory;
  const Outcome whole = run(small, directory / "whole");
  INFO(whole.output);
  REQUIRE(whole.exit_code == 0);
  int kills = 0;
  for (auto patience = 60ms;; patience += 45ms) {
    const Process process = training::start(small, directory / "killed");
    std::this_thread::sleep_for(patience);
    process.send(SIGKILL);
    const Outcome outcome = process.wait();
    if (outcome.exit_code == 0) {
      CHECK(outcome.output == whole.output);
      break;
    }
    INFO(outcome.output);
    REQUIRE(outcome.exit_code == -SIGKILL);
    ++kills;
  }
  CHECK(kills >= 2);
  check_equal(results_of(directory / "killed"), results_of(directory / "whole"));
  CHECK(json_of(directory / "killed" / "run" / "manifest.json").at("settings").at("resumed_at_step") > 0);
  CHECK(checkpoints_in(directory / "whole").empty());
}

TEST_CASE("training: told by SIGUSR1, a run writes a checkpoint of the steps it has done and ends") {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out";
  std::string arguments = small;
  arguments.replace(arguments.find("--steps 500 --checkpoint-every 7"), 32,
                    "--steps 2000 --checkpoint-every 0");  // no other checkpoint
  REQUIRE(run(arguments, directory / "whole").exit_code == 0);
  int steps = 0, checkpoints = 0;
  for (auto patience = 100ms;; patience += 50ms) {
    const Process process = training::start(arguments, out);
    std::this_thread::sleep_for(patience);
    process.send(SIGUSR1);
    process.send(SIGUSR1);  // as from a scheduler and from its script
    const Outcome told = process.wait();
    INFO(told.output);
    if (told.exit_code == 0) break;
    if (told.exit_code == -SIGUSR1) continue;  // before the program listens
    REQUIRE(told.exit_code == 130);
    if (checkpoints_in(out).empty() || steps_of(checkpoints_in(out).back()) == steps) continue;
    CHECK(told.output ==
          "training: interrupted; the same command goes on from what '" + out.string() + "' holds\n");
    CHECK(steps_of(checkpoints_in(out).back()) > steps);
    steps = steps_of(checkpoints_in(out).back());
    ++checkpoints;
  }
  CHECK(checkpoints >= 2);
  check_equal(results_of(out), results_of(directory / "whole"));
  CHECK(json_of(out / "run" / "manifest.json").at("settings").at("resumed_at_step") == steps);
}

TEST_CASE("training: interrupted while it draws, a run says what it has left") {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out", gnuplot = directory / "gnuplot";
  std::ofstream(gnuplot) << "#!/bin/sh\nkill -TERM $PPID\n";
  fs::permissions(gnuplot, fs::perms::owner_all);
  const std::string command =
      HALFLAB_BINARY_DIRECTORY "/training --model mlp:hidden1=32:hidden2=16 --steps 3 --out " + out.string();
  const auto interrupted = programs::run_command("PATH=" + directory.path().string() + ":$PATH " + command);
  CHECK(interrupted.exit_code == 130);
  CHECK(interrupted.output ==
        "training: interrupted; the same command goes on from what '" + out.string() + "' holds\n");
  CHECK(!fs::exists(out / "summary.json"));
  const std::string trained = content_of(out / "run" / "manifest.json");
  CHECK(programs::run_command(command).exit_code == 0);
  CHECK(content_of(out / "run" / "manifest.json") == trained);
}

TEST_CASE("training: a sweep that was killed, or interrupted, goes on, and makes no finished cell again") {
  const TemporaryDirectory directory;
  const std::string sweep =
      "--sweep --model mlp:hidden1=32:hidden2=16,cnn:channels=2 --policy fp32,amp --seeds 2 --batch 8 "
      "--steps 60 "
      "--checkpoint-every 5 ";
  const fs::path out = directory / "cut", cells = out / "cells";
  const Outcome whole = run(sweep, directory / "whole");
  INFO(whole.output);
  REQUIRE(whole.exit_code == 0);

  const fs::path first_cell = cells / "mlp+hidden1=32+hidden2=16-fp32-none-0" / "manifest.json";
  {
    const Process process = training::start(sweep, out);
    while (process.is_running() && !fs::exists(first_cell)) std::this_thread::sleep_for(1ms);
    process.send(SIGKILL);
    process.wait();
  }
  REQUIRE(fs::exists(first_cell));
  CHECK(!fs::exists(out / "summary.json"));
  const std::string first_manifest = content_of(first_cell);
  {
    const Process process = training::start(sweep, out);
    std::this_thread::sleep_for(300ms);
    process.send(SIGINT);
    const Outcome interrupted = process.wait();
    INFO(interrupted.output);
    // Before the program listens and after it is done, too, the signal may come.
    CHECK((interrupted.exit_code == 130 || interrupted.exit_code == -SIGINT || interrupted.exit_code == 0));
    if (interrupted.exit_code == 130) {
      CHECK(contains(interrupted.output, "goes on"));
      CHECK(!fs::exists(out / "summary.json"));
      CHECK(!fs::exists(out / ".partial"));
    }
  }
  const Outcome resumed = run(sweep + "--threads 1", out);
  CHECK(resumed.exit_code == 0);
  CHECK(resumed.output == whole.output);
  CHECK(content_of(first_cell) == first_manifest);
  check_equal(results_of(out), results_of(directory / "whole"));

  // A larger grid in the same directory makes only what it has more.
  const std::string larger =
      "--sweep --model mlp:hidden1=32:hidden2=16,cnn:channels=2 --policy fp32,amp --seeds 3 --batch 8 "
      "--steps 60 ";
  CHECK(run(larger, out).exit_code == 0);
  CHECK(content_of(first_cell) == first_manifest);
  CHECK(std::distance(fs::directory_iterator(cells), {}) == 12);
}

TEST_CASE("training: a checkpoint of another run is refused with both values and left alone") {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out";
  leave_unfinished(small, out);
  const Files before = results_of(out);
  const auto refusal = [&](const std::string& arguments) {
    const Outcome outcome = run(arguments, out);
    CHECK(outcome.exit_code == 2);
    CHECK(std::ranges::count(outcome.output, '\n') == 1);
    return outcome.output;
  };
  const std::string model = refusal("--model cnn:channels=2 --steps 500");
  CHECK(contains(model, "mlp:hidden1=32"));
  CHECK(contains(model, "cnn:channels=2"));
  const std::string policy = refusal(small + "--policy O2");
  CHECK(contains(policy, "'amp'"));
  CHECK(contains(policy, "'O2'"));
  CHECK(contains(refusal(small + "--seed 4"), "seed '0'"));
  CHECK(contains(refusal(small + "--clip-norm 1"), "norm limit 'none'"));
  std::map<std::string, std::string> after = results_of(out);
  for (const auto& [name, content] : before) {
    INFO(name);
    CHECK((contains(name, ".partial") || after[name] == content));
  }
}

TEST_CASE("training: a run that went on with other ranks says so for good, and is no run of either number") {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out";
  const std::string arguments =
      "--model mlp:hidden1=16 --batch 12 --steps 400 --checkpoint-every 10 --twin-every 0 --ranks ";
  leave_unfinished(arguments + "4", out);
  const std::string steps = std::to_string(steps_of(checkpoints_in(out).back()));
  const auto refusal = [&](const std::string& ranks) {
    const Outcome outcome = run(arguments + ranks, out);
    CHECK(outcome.exit_code == 2);
    return outcome.output;
  };
  CHECK(contains(refusal("3"),
                 "is of a run on 4 ranks, and this one has 3 ranks; allowed: as many, "
                 "--resume-with-other-ranks, another directory, "));
  CHECK(contains(refusal("1"), "is of a run on 4 ranks, and this one has 1 rank; allowed: "));
  const std::string others = " --resume-with-other-ranks";
  CHECK(contains(refusal("3 --allreduce ring:precision=fp16" + others), "is of a run with all-reduce '"));
  const std::string said = "to step " + steps + " on 4 ranks, then on 3";
  const Outcome resumed = run(arguments + "3" + others, out);
  INFO(resumed.output);
  REQUIRE(resumed.exit_code == 0);
  CHECK(contains(resumed.output, "amp with dynamic, seed 0, ran " + said + ": its bits are those of no "));
  CHECK(contains(content_of(out / "run" / "verdict.txt"), said));
  CHECK(json_of(out / "run" / "manifest.json").at("options").at("former ranks") == said);

  const std::string manifest = content_of(out / "run" / "manifest.json");
  REQUIRE(run(arguments + "3" + others, out).exit_code == 0);
  CHECK(content_of(out / "run" / "manifest.json") == manifest);  // it was finished
  REQUIRE(run(arguments + "3", out).exit_code == 0);
  CHECK(!json_of(out / "run" / "manifest.json").at("options").contains("former ranks"));
}

TEST_CASE("training: a finished cell of a sweep is not replaced by one of other options") {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out";
  const std::string sweep = "--sweep --model mlp:hidden1=8 --policy fp32,amp --batch 4 ";
  REQUIRE(run(sweep + "--steps 6 --shard 1/1", out).exit_code == 0);
  const Files before = results_of(out);
  for (const char* other : {"--steps 7 --shard 1/1", "--steps 7"}) {
    const Outcome outcome = run(sweep + other, out);
    CHECK(outcome.exit_code == 2);
    CHECK(std::ranges::count(outcome.output, '\n') == 1);
    CHECK(contains(outcome.output, "cell '" + (out / "cells" / "mlp+hidden1=8-").string()));
    CHECK(contains(outcome.output,
                   "' is of another run: its steps is '6', and here '7'; allowed: the same "
                   "options, another directory, or to remove the cell"));
    check_equal(results_of(out), before);
  }
}

TEST_CASE("training: of two checkpoints the older stands in for a damaged newer one") {
  const TemporaryDirectory directory;
  REQUIRE(run(small, directory / "whole").exit_code == 0);
  const fs::path out = directory / "out";
  leave_unfinished(small, out);
  const fs::path newest = checkpoints_in(out).back();
  fs::resize_file(newest, fs::file_size(newest) / 2);
  const Outcome resumed = run(small, out);
  INFO(resumed.output);
  CHECK(resumed.exit_code == 0);
  CHECK(resumed.output.starts_with("warning: checkpoint '" + newest.string() + "' was cut off"));
  check_equal(results_of(out), results_of(directory / "whole"));

  const fs::path other = directory / "other";
  leave_unfinished(small, other);
  for (const fs::path& checkpoint : checkpoints_in(other)) std::ofstream(checkpoint) << "no checkpoint";
  const Outcome refused = run(small, other);
  CHECK(refused.exit_code == 2);
  CHECK(std::ranges::count(refused.output, '\n') == 1);
  CHECK(contains(refused.output, "is no checkpoint"));
}

TEST_CASE("training: no checkpoint is larger than the first, and what steps wrote is held to its checksum") {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out", steps = out / "run" / "steps.partial.csv";
  const std::string arguments =
      "--model mlp:hidden1=8:hidden2=8 --batch 4 --steps 3000 --checkpoint-every 20 --twin-every 100 "
      "--scalers dynamic:growth_interval=2 ";  // which skips every third step or so
  leave_unfinished(arguments, out);
  const std::uintmax_t early_size = fs::file_size(checkpoints_in(out).back());
  const std::uintmax_t early_rows = fs::file_size(steps);
  leave_unfinished(arguments, out, 600);
  const std::uintmax_t late_size = fs::file_size(checkpoints_in(out).back());
  CHECK(fs::file_size(steps) > early_rows + 20'000);
  CHECK(late_size <
        early_size + 1000);  // numbers take up to 8 bytes, and the first of each kind of skip is told

  std::string rows = content_of(steps);
  rows[100] ^= 1;
  std::ofstream(steps, std::ios::binary) << rows;
  const Outcome refused = run(arguments, out);
  CHECK(refused.exit_code == 2);
  CHECK(std::ranges::count(refused.output, '\n') == 1);
  CHECK(contains(refused.output, "'steps.partial.csv'"));
  CHECK(contains(refused.output, "remove"));
}

TEST_CASE("training: a damaged file of a finished cell is named, and its run made again") {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out", cell = out / "cells" / "mlp+hidden1=8-amp-dynamic-1";
  const std::string sweep = "--sweep --quick --model mlp:hidden1=8 --batch 4 --steps 4 --seeds 2";
  REQUIRE(run(sweep, out).exit_code == 0);
  const Files whole = results_of(out);
  const auto makes_again = [&](const std::string& named) {
    const Outcome again = run(sweep, out);
    INFO(again.output);
    CHECK(again.exit_code == 0);
    CHECK(again.output.starts_with("warning: file '" + (cell / named).string() +
                                   "' is missing or not what its run wrote; the run is made again\n"));
    CHECK(!contains(again.output.substr(again.output.find('\n')), "warning"));
    check_equal(results_of(out), whole);
    CHECK(!contains(run(sweep, out).output, "warning"));
  };
  const auto put = [&](const std::string& name, const std::string& content) {
    std::ofstream(cell / name, std::ios::binary) << content;
  };
  const auto with = [](std::string text, const std::string& old, const std::string& replacement) {
    const std::size_t at = text.find(old);
    REQUIRE(at != std::string::npos);
    return text.replace(at, old.size(), replacement);
  };
  for (const char* name : {"steps.csv", "skips.csv", "parameters.csv", "summary.json", "verdict.txt"}) {
    INFO(name);
    const std::string content = content_of(cell / name);
    put(name, content.substr(0, content.size() / 2));
    makes_again(name);
    put(name, content + content.back());
    makes_again(name);
    fs::remove(cell / name);
    makes_again(name);
  }
  const std::string summary = content_of(cell / "summary.json");
  put("summary.json", with(summary, "\"final_loss\": ", "\"final_loss\": 1"));
  makes_again("summary.json");

  const std::string manifest = content_of(cell / "manifest.json");
  const std::size_t sums = manifest.find("\"checksums\"");
  REQUIRE(sums != std::string::npos);
  const std::size_t digit =
      manifest.find("\"skips.csv\": \"", sums) + std::string("\"skips.csv\": \"").size();
  std::string altered = manifest;
  altered[digit] = altered[digit] == '0' ? '1' : '0';
  put("manifest.json", altered);
  makes_again("skips.csv");
  put("manifest.json", with(manifest, "\"checksums\"", "\"checksum\""));
  makes_again("manifest.json");
  put("manifest.json", manifest.substr(0, manifest.size() / 2));
  makes_again("manifest.json");
}

TEST_CASE("training: skips.csv and parameters.csv tell of the whole run, killed or not") {
  const TemporaryDirectory directory;
  const fs::path whole = directory / "whole", killed = directory / "killed";
  const std::string arguments =
      "--model mlp:hidden1=8:hidden2=8 --batch 4 --steps 400 --checkpoint-every 10 --policy fp16 --scalers "
      "dynamic:growth_interval=2 ";
  const Outcome outcome = run(arguments, whole);
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  const std::string skips = content_of(whole / "skips.csv");
  const nlohmann::json summary = json_of(whole / "summary.json");
  CHECK(skips.starts_with("model,policy,scaler,seed,step,decision,scale_log2,place,operation,layer,"));
  const int skipped = summary.at("skipped_steps");
  CHECK(skipped > 10);
  CHECK(std::ranges::count(skips, '\n') == 1 + skipped);
  CHECK(summary.at("skipped_for_scale").get<int>() + summary.at("skipped_at_any_scale").get<int>() +
            summary.at("skipped_by_rule").get<int>() ==
        skipped);
  CHECK(contains(outcome.output, "Skipped for its scale: "));
  CHECK(contains(outcome.output, "the first under fp16 with dynamic:growth_interval=2, seed 0. Step "));

  std::istringstream lines(content_of(whole / "parameters.csv"));
  std::string line;
  std::getline(lines, line);
  CHECK(line == "model,policy,scaler,seed,parameter,updates,swallowed");
  double updates = 0, swallowed = 0;
  int parameters = 0;
  while (std::getline(lines, line)) {
    const std::vector<std::string> cells = test::cells_of(line);
    REQUIRE(cells.size() == 7);
    updates += std::stod(cells[5]);
    swallowed += std::stod(cells[6]);
    ++parameters;
  }
  CHECK(parameters == 6);  // weight and bias of three layers
  CHECK(swallowed > 0);
  CHECK(summary.at("fraction_swallowed") == swallowed / updates);

  leave_unfinished(arguments, killed, 200);
  CHECK(run(arguments, killed).exit_code == 0);
  check_equal(results_of(killed), results_of(whole));
}
