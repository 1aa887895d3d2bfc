#include "experiments/training/mpi/supervisor.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <system_error>

namespace experiments {
namespace {

volatile pid_t child = 0;
volatile sig_atomic_t last_handed_on = 0;

/// What launchers and schedulers send.
constexpr std::array handed_on{SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCONT};

[[noreturn]] void throw_no_child() {
  throw std::runtime_error(
      fmt::format("--mpi: no process can be started ({})", std::generic_category().message(errno)));
}

RankProgress& shared_progress() {
  void* const memory =
      ::mmap(nullptr, sizeof(RankProgress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw_no_child();
  return *new (memory) RankProgress;
}

}  // namespace

RankProgress& continue_in_child(const std::function<std::string(int signal, const RankProgress&)>& line) {
  RankProgress& progress = shared_progress();
  const pid_t parent = ::getpid();
  child = ::fork();
  if (child < 0) throw_no_child();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) std::_Exit(1);
    ::setpgid(0, 0);  // signals come through the parent alone
    return progress;
  }
  for (const int signal : handed_on) {
    ::signal(signal, [](int number) {
      last_handed_on = number;
      ::kill(child, number);
    });
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFSIGNALED(status)) std::_Exit(WEXITSTATUS(status));
  constexpr int by_signal = 128;  // as shells have it
  if (WTERMSIG(status) == last_handed_on) std::_Exit(by_signal + last_handed_on);
  const std::string last = line(WTERMSIG(status), progress) + "\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, last.data(), last.size());
  std::_Exit(1);
}

}  // namespace experiments
