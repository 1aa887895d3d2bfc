#pragma once
/// Work on contiguous parts of a range, each on a thread of its own. Threads that have done their part sleep
/// until one is needed again, by whichever call.

#include <cstddef>
#include <functional>

namespace fp16::detail {

/// Calls work(begin, end) for at most `threads` parts of 0 .. count, all but one on other threads. Parts
/// begin at multiples of `granule`, and are worked on in the default floating-point environment; each thread
/// then has its own back, status flags included. An exception of one part is thrown again when all have
/// ended; another of the same call is lost. Throws std::invalid_argument for fewer than one thread.
void for_each_part(std::size_t count, int threads, std::size_t granule,
                   const std::function<void(std::size_t, std::size_t)>& work);

}  // namespace fp16::detail
