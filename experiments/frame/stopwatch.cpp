#include "experiments/frame/stopwatch.h"

#include <chrono>

namespace experiments {
namespace {

std::int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Stopwatch::Stopwatch() : start_ns_(now_ns()) {}

double Stopwatch::seconds() const {
  return static_cast<double>(now_ns() - start_ns_) * 1e-9;
}

}  // namespace experiments
