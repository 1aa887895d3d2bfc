#include "experiments/frame/gnuplot_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
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

/// The caller's environment but for its locale: scripts are UTF-8, which gnuplot can take only in such a one.
std::vector<char*> environment_with(std::string& locale) {
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("LC_ALL=")) environment.push_back(*variable);
  }
  environment.insert(environment.end(), {locale.data(), nullptr});
  return environment;
}

/// Starts a child that ends where a file grows beyond the limit of its size. This process ignores that signal
/// (guarded() in experiment.cpp), and a gnuplot that did so too would cut its files and report success.
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

}  // namespace

ChildResult run_gnuplot(const std::string& script, const std::filesystem::path& directory,
                        double time_limit_s) {
  std::array<int, 2> err_pipe;
  if (::pipe2(err_pipe.data(), O_CLOEXEC) != 0) return {.spawn_error = errno};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, err_pipe[1], STDERR_FILENO);

  std::string program = "gnuplot";
  std::string option = "-d";
  std::string file = script;
  std::array<char*, 4> arguments{program.data(), option.data(), file.data(), nullptr};
  std::string locale = "LC_ALL=C.UTF-8";
  const SpawnAttributes attributes;
  ChildResult result;
  pid_t child = 0;
  result.spawn_error = ::posix_spawnp(&child, program.c_str(), &actions, attributes.get(), arguments.data(),
                                      environment_with(locale).data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(err_pipe[1]);
  if (result.spawn_error == 0) wait_for(child, err_pipe[0], time_limit_s, result);
  ::close(err_pipe[0]);
  return result;
}

}  // namespace experiments
