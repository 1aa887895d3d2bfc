#include "fp16/vector/threads.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "fp16/vector/environment.h"

namespace fp16::detail {
namespace {

using PartWork = std::function<void(std::size_t)>;

/// A thread that sleeps until it gets a part to work on. What it has allocated for itself stays with it from
/// one part to the next.
class Worker {
 public:
  Worker() { std::thread(&Worker::run, this).detach(); }

  void start(const PartWork& work, std::size_t part) {
    work_ = &work;
    part_ = part;
    become(State::busy);
  }
  void wait_until_idle() { wait_until(State::idle); }

 private:
  enum class State { idle, busy };

  void become(State state) {
    {
      const std::scoped_lock lock(mutex_);
      state_ = state;
    }
    changed_.notify_one();
  }
  void wait_until(State state) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return state_ == state; });
  }
  void run() {
    for (;;) {
      wait_until(State::busy);
      (*work_)(part_);
      become(State::idle);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::idle;
  const PartWork* work_ = nullptr;
  std::size_t part_ = 0;
};

/// The idle workers of the process. Whoever needs one gets one, so that calls never wait for each other, be
/// they nested or made by several threads.
class Pool {
 public:
  Worker* take() {
    const std::scoped_lock lock(mutex_);
    if (idle_.empty()) {
      idle_.reserve(++workers_);
      return new Worker;
    }
    Worker* worker = idle_.back();
    idle_.pop_back();
    return worker;
  }
  void give_back(Worker* worker) {
    const std::scoped_lock lock(mutex_);
    idle_.push_back(worker);
  }

 private:
  std::mutex mutex_;
  std::size_t workers_ = 0;
  std::vector<Worker*> idle_;  ///< has room for all
};

/// Never destroyed: its threads sleep until the process ends. A process that fork() has made begins with an empty pool, since
/// no thread but the one that called fork() exists in it.
Pool& pool() {
  static Pool* workers = new Pool;
  [[maybe_unused]] static const int registered =
      ::pthread_atfork(nullptr, nullptr, [] { workers = new Pool; });
  return *workers;
}

/// The workers of one call, until all are done.
class Team {
 public:
  explicit Team(std::size_t size) { workers_.reserve(size); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team() {
    for (Worker* worker : workers_) {
      worker->wait_until_idle();
      pool().give_back(worker);
    }
  }
  void start(const PartWork& work, std::size_t part) {
    workers_.push_back(pool().take());
    workers_.back()->start(work, part);
  }

 private:
  std::vector<Worker*> workers_;
};

}  // namespace

void for_each_part(std::size_t count, int threads, std::size_t granule,
                   const std::function<void(std::size_t, std::size_t)>& work) {
  if (threads < 1)
    throw std::invalid_argument("threads: " + std::to_string(threads) + " is not allowed; at least 1");
  const std::size_t granules = (count + granule - 1) / granule;
  const auto parts = std::max<std::size_t>(1, std::min<std::size_t>(threads, granules));
  if (parts == 1) return in_default_environment([&] { work(0, count); });
  const auto border = [&](std::size_t part) { return std::min(count, granules * part / parts * granule); };

  std::exception_ptr failure;
  std::mutex mutex;
  const PartWork guarded = [&](std::size_t part) {
    try {
      in_default_environment([&] { work(border(part), border(part + 1)); });
    } catch (...) {
      const std::scoped_lock lock(mutex);
      failure = std::current_exception();
    }
  };
  {
    Team others(parts - 1);
    for (std::size_t part = 1; part < parts; ++part) others.start(guarded, part);
    guarded(0);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace fp16::detail
