#include "fp16/parts.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace fp16::detail {

void for_each_part(std::size_t count, int threads, std::size_t granule,
                   const std::function<void(std::size_t, std::size_t)>& work) {
  if (threads < 1)
    throw std::invalid_argument("threads: " + std::to_string(threads) + " is not allowed; at least 1");
  const std::size_t granules = (count + granule - 1) / granule;
  const auto parts = std::max<std::size_t>(1, std::min<std::size_t>(threads, granules));
  const auto border = [&](std::size_t part) { return std::min(count, granules * part / parts * granule); };

  std::exception_ptr failure;
  std::mutex mutex;
  const auto guarded = [&](std::size_t part) {
    try {
      work(border(part), border(part + 1));
    } catch (...) {
      const std::scoped_lock lock(mutex);
      failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t part = 1; part < parts; ++part) others.emplace_back(guarded, part);
    guarded(0);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace fp16::detail
