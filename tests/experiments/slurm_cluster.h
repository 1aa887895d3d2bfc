#pragma once
/// Slurm itself, for one test: two nodes of one CPU each on this host.

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/experiments/programs.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"

namespace slurm {

using namespace std::chrono_literals;
using programs::Outcome;
using programs::run_command;

/// What this machine lacks; empty where a cluster can be started.
inline std::string why_not() {
  if (::geteuid() != 0) return "Slurm's daemons are started by root alone";
  for (const char* program : {"munged", "slurmctld", "slurmd", "sbatch", "unshare", "python3"}) {
    if (run_command(std::string("command -v ") + program).exit_code != 0)
      return std::string(program) + " is not installed";
  }
  if (std::filesystem::is_empty("/sys/fs/cgroup")) return "no cgroups are mounted at /sys/fs/cgroup";
  if (run_command("unshare --pid --fork --mount-proc true").exit_code != 0)
    return "a process namespace cannot be made";
  return "";
}

/// Waits until it is so. Throws std::runtime_error, saying what was not, once the time is over.
inline void wait_until(const std::string& what, const std::function<bool()>& is_so,
                       std::chrono::seconds at_most = 60s) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("not within its time: " + what);
    std::this_thread::sleep_for(50ms);
  }
}

/// A cluster as long as it lives, and the one that Slurm's commands of this process find.
class Cluster {
 public:
  Cluster() {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
    process_ = ::fork();
    REQUIRE(process_ >= 0);
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::execl(HALFLAB_SOURCE_DIRECTORY "/tests/experiments/slurm_cluster.sh", "slurm_cluster.sh",
              folder_.path().c_str(), nullptr);
      ::_exit(127);
    }
    ::setenv("SLURM_CONF", (folder_ / "slurm.conf").c_str(), 1);
    try {
      wait_until(
          "a cluster that is ready", [this] { return std::filesystem::exists(folder_ / "ready"); }, 30s);
    } catch (const std::runtime_error& late) {
      const std::string logs = run_command("tail -n 20 " + folder_.path().string() + "/*.log").output;
      end();
      throw std::runtime_error(late.what() + ("\n" + logs));
    }
  }
  ~Cluster() {
    try {
      end();
    } catch (const std::exception& error) {
      MESSAGE(error.what());
    }
    ::unsetenv("SLURM_CONF");
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// What Slurm says of a job, such as "RUNNING" for JobState; empty for one that it does not know.
  static std::string field(const std::string& job, const std::string& name) {
    const std::string text = " " + run_command("scontrol --oneliner show job " + job).output;
    const std::size_t place = text.find(" " + name + "=");
    if (place == std::string::npos) return "";
    const std::size_t begin = place + name.size() + 2;
    return text.substr(begin, text.find(' ', begin) - begin);
  }
  static std::string state(const std::string& job) { return field(job, "JobState"); }
  static int restarts(const std::string& job) { return std::stoi(field(job, "Restarts")); }
  /// Waits as wait_until does; what is thrown has all that Slurm says of its jobs, and the ends of their logs.
  static void wait_for(const std::string& job, const std::string& wanted) {
    try {
      wait_until(
          job + " is " + wanted, [&] { return state(job) == wanted; }, 90s);
    } catch (const std::runtime_error& late) {
      const std::string jobs = run_command("scontrol show job").output;
      const std::string logs =
          run_command("tail -n 20 $(scontrol show job | sed -n 's/^ *StdOut=//p' | sort -u)").output;
      throw std::runtime_error(late.what() + ("\n" + jobs + logs));
    }
  }

 private:
  /// The namespace's first process is reaped after all others in it.
  void end() {
    const std::string id = std::to_string(process_);
    const std::string first = test::content_of("/proc/" + id + "/task/" + id + "/children");
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    if (first.empty()) return;
    const int space = std::stoi(first);
    wait_until(
        "the end of all daemons", [space] { return ::kill(space, 0) != 0; }, 20s);
  }

  test::TemporaryDirectory folder_;
  pid_t process_;
};

}  // namespace slurm
