#pragma once
/// The binary `training` in a process of its own.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/file_contents.h"

namespace training {

struct Outcome {
  int exit_code;       ///< minus the signal that ended it
  std::string output;  ///< stdout and stderr together
};

/// A run of `training`, whose output is kept in the file `out`.log.
class Process {
 public:
  Process(const std::string& arguments, const std::filesystem::path& out) : log_(out.string() + ".log") {
    std::vector<std::string> words{std::string(HALFLAB_BINARY_DIRECTORY) + "/training", "--out",
                                   out.string()};
    std::istringstream stream(arguments);
    words.insert(words.end(), std::istream_iterator<std::string>(stream), {});
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

inline Outcome run(const std::string& arguments, const std::filesystem::path& out) {
  return Process(arguments, out).wait();
}

inline nlohmann::json json_of(const std::filesystem::path& file) {
  return nlohmann::json::parse(test::content_of(file));
}

}  // namespace training
