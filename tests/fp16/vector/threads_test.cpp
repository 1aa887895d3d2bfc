/// Work on parts of a range: every element once, exceptions, calls within calls and from several threads.

#include "fp16/vector/threads.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

using fp16::detail::for_each_part;

namespace {

/// How often each of `count` elements was worked on.
std::vector<int> visits(std::size_t count, int threads, std::size_t granule) {
  std::vector<int> seen(count);
  for_each_part(count, threads, granule, [&](std::size_t begin, std::size_t end) {
    for (; begin < end; ++begin) ++seen[begin];
  });
  return seen;
}

}  // namespace

TEST_CASE("for_each_part: every element once, parts begin at multiples of the granule") {
  for (const std::size_t count : {0, 1, 2, 7, 64, 1000}) {
    for (const int threads : {1, 2, 3, 8}) {
      for (const std::size_t granule : {1, 7, 64}) {
        CHECK(visits(count, threads, granule) == std::vector<int>(count, 1));
        std::atomic<int> parts = 0, misplaced = 0;
        for_each_part(count, threads, granule, [&](std::size_t begin, std::size_t) {
          ++parts;
          misplaced += begin % granule != 0;
        });
        CHECK(parts >= 1);
        CHECK(parts <= threads);
        CHECK(misplaced == 0);
      }
    }
  }
  CHECK_THROWS_WITH_AS(for_each_part(1, 0, 1, [](std::size_t, std::size_t) {}),
                       "threads: 0 is not allowed; at least 1", std::invalid_argument);
}

TEST_CASE("for_each_part: a process that fork() has made has threads of its own") {
#ifdef __SANITIZE_THREAD__
  MESSAGE("skipped: the thread sanitizer ends a process that fork() has made and that starts threads");
#elif defined(HALFLAB_IS_EMULATED)
  MESSAGE("skipped: QEMU ends a process that fork() has made and that starts threads");
#else
  visits(64, 3, 1);  // from now on there are workers, which the child has not
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(20);  // a child that waits for the parent's workers is killed
    ::_exit(visits(64, 3, 1) == std::vector<int>(64, 1) ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
#endif
}

TEST_CASE("for_each_part: the parts of one call run at the same time, the first on the caller's thread") {
  constexpr int threads = 4;
  std::atomic<int> arrived = 0;
  std::vector<std::thread::id> ids(threads);
  for_each_part(threads, threads, 1, [&](std::size_t begin, std::size_t) {
    ids[begin] = std::this_thread::get_id();
    ++arrived;
    while (arrived < threads) std::this_thread::yield();
  });
  CHECK(ids[0] == std::this_thread::get_id());
  CHECK(std::set(ids.begin(), ids.end()).size() == threads);
}

TEST_CASE("for_each_part: an exception is thrown again after all parts, and the next call is as any other") {
  for (const std::size_t failing : {0, 1, 2}) {
    std::atomic<int> ended = 0;
    const auto work = [&](std::size_t begin, std::size_t) {
      if (begin == failing) throw std::runtime_error("a part");
      ++ended;
    };
    CHECK_THROWS_WITH_AS(for_each_part(3, 3, 1, work), "a part", std::runtime_error);
    CHECK(ended == 2);
    CHECK(visits(100, 3, 1) == std::vector<int>(100, 1));
  }
}

TEST_CASE("for_each_part: calls within parts, and callers on several threads") {
  std::atomic<int> wrong = 0, inner = 0;
  const auto call_often = [&] {
    for (int i = 0; i < 100; ++i) {
      for_each_part(4, 2, 1, [&](std::size_t begin, std::size_t end) {
        inner += static_cast<int>(end - begin);
        wrong += visits(100, 3, 7) != std::vector<int>(100, 1);
      });
    }
  };
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 4; ++i) callers.emplace_back(call_often);
  }
  CHECK(wrong == 0);
  CHECK(inner == 4 * 100 * 4);
}
