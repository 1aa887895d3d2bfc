#pragma once
/// An experiment binary in a process of its own, to be signalled while it runs.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/file_contents.h"

namespace process {

struct Outcome {
  int exit_code;       ///< minus the signal that ended it
  std::string output;  ///< stdout and stderr together
};

/// A run of "binary argument...", whose output is kept in the file `log_file`.
class Process {
 public:
  Process(const std::string& command, std::filesystem::path log_file) : log_(std::move(log_file)) {
    std::istringstream stream(HALFLAB_BINARY_DIRECTORY "/" + command);
    std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
    std::vector<char*> raw;
    for (std::string& word : words) raw.push_back(word.data());
    raw.push_back(nullptr);
    const int log = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    REQUIRE(log >= 0);
    id_ = ::fork();
    if (id_ == 0) {
      ::dup2(log, STDOUT_FILENO);
      ::dup2(log, STDERR_FILENO);
      ::execv(raw[0], raw.data());
      ::_exit(127);
    }
    ::close(log);
    REQUIRE(id_ > 0);
  }

  void send(int signal) const { ::kill(id_, signal); }
  bool is_running() const {
    siginfo_t information{};
    ::waitid(P_PID, static_cast<id_t>(id_), &information, WEXITED | WNOHANG | WNOWAIT);
    return information.si_pid == 0;
  }

  Outcome wait() const {
    int status = 0;
    ::waitpid(id_, &status, 0);
    return {WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status), test::content_of(log_)};
  }

 private:
  std::filesystem::path log_;
  pid_t id_;
};

}  // namespace process
