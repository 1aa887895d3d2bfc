#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/fp16/elementary_oracle.h"

namespace fp16 {
namespace {

double max_error_between(const ElementaryFunction& row, std::uint64_t first, std::uint64_t last) {
  double worst = 0;
  for (std::uint64_t bits = first; bits < last; ++bits) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    worst = std::max(worst, error_ulp(row.function(x), row.reference(x)));
  }
  return worst;
}

TEST_CASE("stated maximum errors hold for all 2^32 inputs, and are tight to 0.02 ulp") {
  constexpr std::uint64_t slices = 64;
  constexpr std::uint64_t slice_size = 0x100000000 / slices;
  const std::uint64_t thread_count = std::max(1u, std::thread::hardware_concurrency());
  for (const ElementaryFunction& row : elementary_functions) {
    std::vector<double> worst_of_slice(slices);
    std::vector<std::jthread> threads;
    for (std::uint64_t thread = 0; thread < thread_count; ++thread) {
      threads.emplace_back([&, thread] {
        for (std::uint64_t slice = thread; slice < slices; slice += thread_count) {
          worst_of_slice[slice] = max_error_between(row, slice * slice_size, (slice + 1) * slice_size);
        }
      });
    }
    threads.clear();
    const double worst = *std::ranges::max_element(worst_of_slice);
    MESSAGE(row.name << ": maximum error " << worst << " ulp");
    CHECK(worst <= row.max_error_ulp);
    CHECK(worst > row.max_error_ulp - 0.02);
  }
}

}  // namespace
}  // namespace fp16
