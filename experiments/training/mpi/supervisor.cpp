#include "experiments/training/mpi/supervisor.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
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

void hand_signals_on() {
  for (const int signal : handed_on) {
    ::signal(signal, [](int number) {
      last_handed_on = number;
      ::kill(child, number);
    });
  }
}

/// From now on waiting is interrupted every second.
void interrupt_each_second() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval second{.it_interval = {.tv_sec = 1, .tv_usec = 0}, .it_value = {.tv_sec = 1, .tv_usec = 0}};
  ::setitimer(ITIMER_REAL, &second, nullptr);
}

std::string by_signal(const char* did, int signal) {
  return fmt::format("{} by signal {} ({})", did, signal, ::strsignal(signal));
}

}  // namespace

std::string Silence::add_second(const RankProgress& progress, bool is_stopped) {
  const std::uint64_t calls = progress.calls, allowed = progress.allowed_seconds;
  seconds_ = calls == calls_ ? seconds_ + 1 : 0;
  calls_ = calls;
  const bool waits = !is_stopped && calls % 2 == 1;
  if (allowed == 0 || seconds_ < (waits ? 2 * allowed : allowed) || (waits && !is_first_)) return {};
  return fmt::format("{} for {} seconds, as --mpi-timeout allows,",
                     waits        ? "has waited for the others"
                     : is_stopped ? "has been stopped"
                                  : "has sent and received nothing",
                     seconds_);
}

RankProgress& continue_in_child(
    bool is_first, const std::function<std::string(const std::string& what, const RankProgress&)>& line) {
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
  hand_signals_on();
  interrupt_each_second();
  const auto tell = [&](const std::string& what) {
    const std::string told = line(what, progress) + "\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, told.data(), told.size());
  };
  Silence silence(is_first);
  bool is_stopped = false;
  int status = 0;
  for (;;) {
    const pid_t changed = ::waitpid(child, &status, WUNTRACED | WCONTINUED);
    if (changed < 0 && errno != EINTR) break;
    if (changed == child) {
      if (WIFEXITED(status) || WIFSIGNALED(status)) break;
      is_stopped = WIFSTOPPED(status);
      if (is_stopped) tell(by_signal("is stopped", WSTOPSIG(status)));
    } else if (const std::string problem = silence.add_second(progress, is_stopped); !problem.empty()) {
      tell(problem);
      std::_Exit(1);
    }
  }
  if (!WIFSIGNALED(status)) std::_Exit(WEXITSTATUS(status));
  constexpr int of_signal = 128;  // as shells have it
  if (WTERMSIG(status) == last_handed_on) std::_Exit(of_signal + last_handed_on);
  tell(by_signal("was ended", WTERMSIG(status)));
  std::_Exit(1);
}

}  // namespace experiments
