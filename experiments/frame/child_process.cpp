#include "experiments/frame/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <thread>
#include <vector>

#include "experiments/frame/interrupt.h"
#include "experiments/frame/stopwatch.h"

namespace experiments {
namespace {

/// Adds what there is to read within `patience`; false at the end of the pipe.
bool read_some(int descriptor, std::chrono::milliseconds patience, std::string& text) {
  pollfd poll{.fd = descriptor, .events = POLLIN, .revents = 0};
  if (::poll(&poll, 1, static_cast<int>(patience.count())) <= 0) return true;
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
  if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && errno == EINTR);
}

/// Collects what the child writes into the pipe until it ends, and ends it where it takes longer than the limit or
/// the run is interrupted.
void wait_for(pid_t child, int err_pipe, double time_limit_s, ChildResult& result) {
  using namespace std::chrono_literals;
  const Stopwatch stopwatch;
  bool is_open = true;
  while (::waitpid(child, &result.status, WNOHANG) == 0) {
    result.timed_out = stopwatch.seconds() > time_limit_s;
    if (result.timed_out || is_interrupted()) {
      ::kill(child, SIGKILL);
      while (::waitpid(child, &result.status, 0) < 0 && errno == EINTR) {
      }
      return;
    }
    if (is_open) {
      is_open = read_some(err_pipe, 20ms, result.err);
    } else {
      std::this_thread::sleep_for(1ms);
    }
  }
  std::size_t size = 0;  // what it wrote last; a child of its own may keep the pipe open
  do {
    size = result.err.size();
    is_open = is_open && read_some(err_pipe, 0ms, result.err);
  } while (is_open && result.err.size() > size);
}

/// The pointers that exec takes, which the texts outlive.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// The caller's environment with these variables in the place of its own.
std::vector<std::string> environment_with(std::vector<std::string> variables) {
  const std::size_t given = variables.size();
  for (char** own = environ; *own != nullptr; ++own) {
    const std::string_view variable = *own;
    const std::string_view name = variable.substr(0, variable.find('=') + 1);
    const auto replaces = [&](const std::string& other) { return other.starts_with(name); };
    if (std::none_of(variables.begin(), variables.begin() + static_cast<std::ptrdiff_t>(given), replaces))
      variables.emplace_back(variable);
  }
  return variables;
}

/// Starts a child that ends where a file grows beyond the limit of its size. This process ignores that signal
/// (guarded() in experiment.cpp), and a child that did so too might cut its files and report success.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    sigset_t defaults;
    ::sigemptyset(&defaults);
    ::sigaddset(&defaults, SIGXFSZ);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&attributes_); }

  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

/// POSIX lets a child end silently with 127 where only it finds that the program cannot be started, as under QEMU.
bool was_never_started(const ChildResult& result) {
  return WIFEXITED(result.status) && WEXITSTATUS(result.status) == 127 && result.err.empty();
}

}  // namespace

ChildResult run_child(const Child& child) {
  std::array<int, 2> err_pipe;
  if (::pipe2(err_pipe.data(), O_CLOEXEC) != 0) return {.spawn_error = errno};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, child.directory.c_str());
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, err_pipe[1], STDERR_FILENO);

  std::vector<std::string> words = child.words, environment = environment_with(child.variables);
  const SpawnAttributes attributes;
  ChildResult result;
  pid_t process = 0;
  result.spawn_error = ::posix_spawnp(&process, words.front().c_str(), &actions, attributes.get(),
                                      pointers_to(words).data(), pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(err_pipe[1]);
  if (result.spawn_error == 0) wait_for(process, err_pipe[0], child.time_limit_s, result);
  ::close(err_pipe[0]);
  if (result.spawn_error == 0 && was_never_started(result)) result.spawn_error = ENOENT;
  return result;
}

std::string how_it_ended(const ChildResult& result) {
  return WIFSIGNALED(result.status) ? fmt::format("was ended by signal {}", WTERMSIG(result.status))
                                    : fmt::format("ended with exit code {}", WEXITSTATUS(result.status));
}

}  // namespace experiments
