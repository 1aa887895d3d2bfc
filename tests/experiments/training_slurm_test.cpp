/// `./lab slurm` with Slurm itself: arrays that are told to stop, killed and requeued.

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/pages/links.h"
#include "tests/experiments/slurm_cluster.h"
#include "tests/experiments/training_process.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

namespace {

namespace fs = std::filesystem;
using slurm::Cluster;
using slurm::Outcome;
using slurm::run_command;
using slurm::wait_until;
using test::contains;
using test::content_of;
using test::TemporaryDirectory;
using namespace std::chrono_literals;

const fs::path checkout = HALFLAB_SOURCE_DIRECTORY;

void require_done(const Outcome& outcome) {
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
}

/// Whether there is no Slurm to test with; says why.
bool must_skip() {
  const std::string reason = slurm::why_not();
  if (!reason.empty()) MESSAGE("skipped: ", reason);
  return !reason.empty();
}

/// What ./lab slurm --submit has handed over, by what it says.
struct Submitted {
  std::string array, merge;

  explicit Submitted(const std::string& said) {
    const std::size_t place = said.find("submitted: array ");
    REQUIRE(place != std::string::npos);
    std::istringstream words(said.substr(place));
    std::string word;
    words >> word >> word >> array >> word >> merge;
    for (std::string* job : {&array, &merge}) std::erase(*job, ',');
  }
  std::string task(int index) const { return array + "_" + std::to_string(index); }
};

/// What a process is told by its environment; nothing of one that has ended.
std::set<std::string> environment_of(const fs::path& process) {
  std::ifstream environment(process / "environ");
  std::set<std::string> variables;
  for (std::string variable; std::getline(environment, variable, '\0');) variables.insert(variable);
  return variables;
}

/// The processes of a task of an array, by name: its shell and what that runs.
std::map<std::string, pid_t> processes_of(const Submitted& job, int index) {
  std::map<std::string, pid_t> found;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::set<std::string> variables = environment_of(entry.path());
    if (!variables.contains("SLURM_ARRAY_JOB_ID=" + job.array) ||
        !variables.contains("SLURM_ARRAY_TASK_ID=" + std::to_string(index)) ||
        !variables.contains("SLURM_CONF=" + std::string(std::getenv("SLURM_CONF"))))
      continue;
    std::ifstream name_file(entry.path() / "comm");
    std::string name;
    std::getline(name_file, name);
    found[name] = std::stoi(entry.path().filename());
  }
  return found;
}

/// The daemon of a node, and what it has started for the task that runs there.
std::vector<pid_t> processes_of_node(const std::string& node, const std::map<std::string, pid_t>& task) {
  std::vector<pid_t> all;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline");
    std::string command;
    std::getline(file, command);
    if (command == std::string("slurmd\0-D\0-N\0", 13) + node + '\0' &&
        environment_of(entry.path()).contains("SLURM_CONF=" + std::string(std::getenv("SLURM_CONF"))))
      all.push_back(std::stoi(entry.path().filename()));
  }
  REQUIRE(all.size() == 1);
  std::ifstream status("/proc/" + std::to_string(task.at("bash")) + "/stat");
  std::string number, name, state;
  pid_t parent = 0;
  status >> number >> name >> state >> parent;
  all.push_back(parent);
  for (const auto& [program, process] : task) all.push_back(process);
  return all;
}

/// A sweep of up to four cells, of a few seconds each.
struct Sweep {
  TemporaryDirectory directory;
  fs::path out = directory / "out";
  std::string command;  ///< up to the folder of the results

  explicit Sweep(const std::string& options)
      : command(HALFLAB_BINARY_DIRECTORY "/training --sweep --model mlp:hidden1=32 --batch 16 " + options +
                " --out ") {}

  Submitted submit(const std::string& options) const {
    const Outcome outcome = run_command("'" + (checkout / "lab").string() + "' slurm --submit " + options +
                                        " -- " + command + out.string());
    require_done(outcome);
    return Submitted(outcome.output);
  }
  void require_bytes_of_plain_run() const {
    require_done(run_command("timeout 300 " + command + (directory / "plain").string()));
    training::Files files = training::results_of(out);
    std::erase_if(files, [](const auto& file) { return file.first.starts_with("slurm/"); });
    training::check_equal(files, training::results_of(directory / "plain"));
  }

  std::string log(int index) const {
    return content_of(out / "slurm" / ("shard-" + std::to_string(index) + ".log"));
  }
  fs::path cell(int index) const {
    const char* const strategies[] = {"fp32-none", "amp-dynamic", "O2-apex_amp", "fp16-none"};
    return out / "cells" / (std::string("mlp+hidden1=32-") + strategies[index - 1] + "-0");
  }
  bool is_made(int index) const { return fs::exists(cell(index) / "manifest.json"); }
  bool has_checkpoint(int index) const {
    return std::ranges::any_of(fs::directory_iterator(cell(index)), [](const auto& entry) {
      return entry.path().filename().string().starts_with("checkpoint-");
    });
  }
  /// Until hundreds of its steps are written down.
  void wait_for_steps(int index) const {
    wait_until("steps of task " + std::to_string(index), [&] {
      std::error_code none;
      const std::uintmax_t size = fs::file_size(cell(index) / "steps.partial.csv", none);
      return !none && size > 30'000;
    });
    REQUIRE(!is_made(index));
  }
};

}  // namespace

TEST_CASE("slurm: an array that is told, requeued, killed and fails ends with the bytes of a plain run") {
  if (must_skip()) return;
  const Cluster cluster;
  const Sweep sweep("--policy fp32,amp,O2,fp16 --steps 24000 --checkpoint-every 0");
  const Submitted job = sweep.submit("--time 1:00:00 --partition main --mem 100");
  CHECK(Cluster::field(job.merge, "Dependency") == "afterok:" + job.array + "_*(unfulfilled)");

  sweep.wait_for_steps(2);
  require_done(run_command("scontrol requeue " + job.task(2)));
  sweep.wait_for_steps(1);
  // In the background, as scancel itself may go on trying for seconds after it has done it.
  require_done(
      run_command("timeout 20 scancel --batch --signal=USR1 " + job.task(1) + " > /dev/null 2>&1 &"));
  // While these two wait, as Slurm has it, for their next start.
  sweep.wait_for_steps(3);
  REQUIRE(::kill(processes_of(job, 3).at("training"), SIGKILL) == 0);
  sweep.wait_for_steps(4);
  for (const auto& [name, process] : processes_of(job, 4)) CHECK(::kill(process, SIGKILL) == 0);

  CHECK(sweep.has_checkpoint(1));
  CHECK(contains(sweep.log(1),
                 "interrupted; the same command goes on from what '" + sweep.out.string() + "' holds\n"));
  for (const int index : {3, 4}) Cluster::wait_for(job.task(index), "FAILED");
  CHECK(Cluster::field(job.task(3), "ExitCode") == "137:0");
  for (const int index : {1, 2}) Cluster::wait_for(job.task(index), "COMPLETED");
  for (const int index : {1, 2}) {
    CHECK(Cluster::restarts(job.task(index)) >= 1);  // a scancel that goes on trying may tell it twice
    CHECK(contains(sweep.log(index), "started again, for the 1. time\n"));
  }
  Cluster::wait_for(job.merge, "CANCELLED");
  CHECK(!fs::exists(sweep.out / "manifest.json"));
  require_done(run_command("scontrol requeue " + job.task(3)));
  Cluster::wait_for(job.task(3), "COMPLETED");
  CHECK(sweep.is_made(3));
  CHECK(!sweep.is_made(4));

  const Submitted again = sweep.submit("--shards 2");
  Cluster::wait_for(again.merge, "COMPLETED");
  sweep.require_bytes_of_plain_run();
}

TEST_CASE("slurm: on a node that dies a task is begun on another, from its last checkpoint") {
  if (must_skip()) return;
  const Cluster cluster;
  const Sweep sweep("--policy fp32 --steps 30000 --checkpoint-every 500");
  const Submitted job = sweep.submit("--time 10");
  sweep.wait_for_steps(1);
  wait_until("a checkpoint", [&] { return sweep.has_checkpoint(1); });
  const std::string node = Cluster::field(job.task(1), "BatchHost");
  for (const pid_t process : processes_of_node(node, processes_of(job, 1)))
    CHECK(::kill(process, SIGKILL) == 0);
  Cluster::wait_for(job.merge, "COMPLETED");
  CHECK(Cluster::restarts(job.task(1)) == 1);
  CHECK(Cluster::field(job.task(1), "BatchHost") != node);
  CHECK(training::json_of(sweep.cell(1) / "manifest.json").at("settings").at("resumed_at_step") > 0);
  sweep.require_bytes_of_plain_run();
}

TEST_CASE("slurm: before its time limit a task writes a checkpoint and queues again") {
  if (must_skip()) return;
  const Cluster cluster;
  const Sweep sweep("--policy fp32,amp,O2,fp16 --steps 1000000 --checkpoint-every 0");
  const Submitted job = sweep.submit("--shards 1 --time 3");
  sweep.wait_for_steps(1);
  // Slurm looks for the ends of jobs twice a minute.
  require_done(run_command("scontrol update JobId=" + job.array + " TimeLimit=1"));
  wait_until(
      "a second start", [&] { return Cluster::restarts(job.task(1)) == 1; }, 70s);
  CHECK(sweep.has_checkpoint(1));
  CHECK(contains(sweep.log(1), "interrupted; the same command goes on"));
  CHECK(!contains(sweep.log(1), "DUE TO TIME LIMIT"));
}

TEST_CASE("slurm: the command of docs/scale_out.md does what its page says") {
  if (must_skip()) return;
  const Cluster cluster;
  const TemporaryDirectory folder;
  fs::create_directory(folder / "build");
  fs::create_directory_symlink(HALFLAB_BINARY_DIRECTORY, folder / "build" / "bin");
  fs::create_symlink(checkout / "lab", folder / "lab");
  std::string command;
  for (const auto& block : experiments::pages::code_blocks(content_of(checkout / "docs" / "scale_out.md"))) {
    if (block.text.starts_with("./lab slurm ")) command = block.text.substr(0, block.text.find('\n'));
  }
  REQUIRE(!command.empty());
  const std::string in_folder = "cd '" + folder.path().string() + "' && ";
  const Outcome outcome = run_command(in_folder + command);
  require_done(outcome);
  const Submitted job(outcome.output);
  CHECK(contains(outcome.output, "lab: to look after them: squeue --jobs " + job.array + "," + job.merge +
                                     "; tail results/slurm/slurm/*.log\n"));
  Cluster::wait_for(job.merge, "COMPLETED");

  const fs::path results = folder / "results" / "slurm";
  std::string plain = command.substr(command.find(" -- ") + 4);
  plain.replace(plain.find("results/slurm"), std::string::npos, "plain");
  require_done(run_command(in_folder + "timeout 300 " + plain));
  CHECK(content_of(results / "verdict.txt") == content_of(folder / "plain" / "verdict.txt"));
  CHECK(content_of(results / "slurm" / "merge.log") == content_of(results / "verdict.txt"));
  CHECK(fs::exists(results / "slurm" / "shard-3.log"));
}
