#include "experiments/training/mpi/watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace experiments {
namespace {

volatile sig_atomic_t another_has_spoken = 0;

/// Readable once the process has ended; below 0 where the system has no such handles, and where it has ended already.
int handle_of(int process) {
  return static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
}

void write_line(const std::string& line) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

Watch::Watch(std::vector<WatchedProcess> others, std::size_t own_rank,
             std::function<std::string(std::size_t)> line)
    : others_(std::move(others)), own_rank_(own_rank), line_(std::move(line)) {
  ::signal(SIGUSR2, [](int) { another_has_spoken = 1; });
  for (const WatchedProcess& other : others_) handles_.push_back(handle_of(other.process));
  handles_.push_back(::eventfd(0, EFD_CLOEXEC));
  thread_ = std::jthread([this] { wait(); });
}

Watch::~Watch() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(handles_.back(), &one, sizeof one);
  thread_.join();
  for (const int handle : handles_) ::close(handle);
}

void Watch::speak_for_all() const {
  for (const WatchedProcess& other : others_) ::kill(other.process, SIGUSR2);
}

void Watch::wait() {
  std::vector<pollfd> polled;
  for (const int handle : handles_) polled.push_back({.fd = handle, .events = POLLIN, .revents = 0});
  while (::poll(polled.data(), polled.size(), -1) < 0) {
  }
  if (polled.back().revents != 0 || another_has_spoken) return;
  const auto has_ended = [&](std::size_t i) { return polled[i].revents != 0; };
  std::size_t first_ended = 0;
  while (!has_ended(first_ended)) ++first_ended;
  const bool is_lowest = std::ranges::none_of(others_, [&](const WatchedProcess& other) {
    return other.rank < own_rank_ && !has_ended(static_cast<std::size_t>(&other - others_.data()));
  });
  if (!is_lowest) return;
  speak_for_all();
  write_line(line_(others_[first_ended].rank) + "\n");
  std::_Exit(1);
}

}  // namespace experiments
