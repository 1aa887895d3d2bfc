#include "sim/tensor/allocation_trace.h"

namespace sim {
namespace {

thread_local AllocationTrace* innermost = nullptr;

}  // namespace

AllocationTrace::AllocationTrace() : outer_(innermost) {
  innermost = this;
}

AllocationTrace::~AllocationTrace() {
  innermost = outer_;
}

void AllocationTrace::allocated(std::size_t bytes) {
  if (innermost == nullptr) return;
  innermost->level_ += static_cast<std::int64_t>(bytes);
  innermost->levels_.push_back(innermost->level_);
}

void AllocationTrace::freed(std::size_t bytes) {
  if (innermost != nullptr) innermost->level_ -= static_cast<std::int64_t>(bytes);
}

}  // namespace sim
