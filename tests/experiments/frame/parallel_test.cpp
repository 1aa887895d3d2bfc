#include "experiments/frame/parallel.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using experiments::parallel_for_each;

TEST_CASE("every index is visited once, whatever the threads") {
  for (const int threads : {-1, 1, 2, 3, 16}) {
    for (const std::size_t count : {0u, 1u, 2u, 100u}) {
      std::vector<int> visits(count);
      parallel_for_each(count, threads, [&](std::size_t index) { ++visits[index]; });
      CHECK(visits == std::vector<int>(count, 1));
    }
  }
}

TEST_CASE("two threads work at the same time") {
  std::atomic<int> arrived = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  parallel_for_each(2, 2, [&](std::size_t) {
    ++arrived;
    while (arrived < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  });
  CHECK(std::chrono::steady_clock::now() < deadline);
}

TEST_CASE("the exception of the lowest index comes out, and no further index starts") {
  for (const int threads : {1, 2, 8}) {
    std::atomic<int> started = 0;
    const auto run = [&] {
      parallel_for_each(1000, threads, [&](std::size_t index) {
        ++started;
        if (index >= 10) throw std::runtime_error(std::to_string(index));
        if (threads > 1 && index == 9) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      });
    };
    CHECK_THROWS_WITH_AS(run(), "10", std::runtime_error);
    CHECK(started <= 10 + threads);
  }
}
