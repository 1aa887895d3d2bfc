#include "sim/tensor/allocation_trace.h"

namespace sim {
namespace {

thread_local AllocationTrace* current = nullptr;

}  // namespace

AllocationTrace::AllocationTrace() : outer_(current) {
  current = this;
}

AllocationTrace::~AllocationTrace() {
  current = outer_;
}

void AllocationTrace::allocated(std::size_t bytes) {
  if (current == nullptr) return;
  current->level_ += static_cast<std::int64_t>(bytes);
  current->levels_.push_back(current->level_);
}

void AllocationTrace::freed(std::size_t bytes) {
  if (current != nullptr) current->level_ -= static_cast<std::int64_t>(bytes);
}

AllocationTrace* AllocationTrace::innermost() {
  return current;
}

AllocationTrace::Continued::Continued(AllocationTrace* trace) : outer_(current) {
  current = trace;
}

AllocationTrace::Continued::~Continued() {
  current = outer_;
}

}  // namespace sim
