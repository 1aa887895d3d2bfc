#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "sim/tensor/random.h"
#include "tests/sim/tensor/normal_oracle.h"

namespace sim {
namespace {

TEST_CASE("the normal map has its stated error and symmetry for all 2^32 values of the bits") {
  constexpr std::uint32_t middle = 0x80000000;
  const std::uint32_t thread_count = std::max(1u, std::thread::hardware_concurrency());
  std::vector<double> worst_of_thread(thread_count);
  std::vector<std::uint64_t> asymmetric(thread_count);
  std::vector<std::jthread> threads;
  for (std::uint32_t thread = 0; thread < thread_count; ++thread) {
    threads.emplace_back([&, thread] {
      double worst = 0;
      for (std::uint64_t bits = thread; bits < middle; bits += thread_count) {
        const auto word = static_cast<std::uint32_t>(bits);
        const float value = RandomStream::normal_from_bits(word);
        worst = std::max(worst, normal_relative_error(word, value));
        asymmetric[thread] += RandomStream::normal_from_bits(~word) != -value;
      }
      worst_of_thread[thread] = worst;
    });
  }
  threads.clear();
  const double worst = *std::ranges::max_element(worst_of_thread);
  MESSAGE("maximum relative error " << worst);
  CHECK(worst < max_normal_relative_error);
  CHECK(std::ranges::all_of(asymmetric, [](std::uint64_t count) { return count == 0; }));
}

}  // namespace
}  // namespace sim
