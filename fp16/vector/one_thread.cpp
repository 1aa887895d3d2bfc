/// In the place of threads.cpp where there are no threads.

#include <stdexcept>

#include "fp16/vector/environment.h"
#include "fp16/vector/threads.h"

namespace fp16::detail {

void for_each_part(std::size_t count, int threads, std::size_t,
                   const std::function<void(std::size_t, std::size_t)>& work) {
  if (threads < 1) throw std::invalid_argument("threads: at least one is needed");
  in_default_environment([&] { work(0, count); });
}

}  // namespace fp16::detail
