#include "sim/tensor/memory_account.h"

#include <algorithm>

#include "sim/tensor/allocation_trace.h"

namespace sim {
namespace {

struct Destination {
  MemoryAccount* account = nullptr;
  MemoryRole role = MemoryRole::temporaries;
};
thread_local Destination current;

}  // namespace

std::string_view name_of(MemoryRole role) {
  switch (role) {
    case MemoryRole::weights:
      return "weights";
    case MemoryRole::master_weights:
      return "master_weights";
    case MemoryRole::optimizer_state:
      return "optimizer_state";
    case MemoryRole::activations:
      return "activations";
    case MemoryRole::gradients:
      return "gradients";
    case MemoryRole::buffers:
      return "buffers";
    case MemoryRole::temporaries:
      return "temporaries";
  }
  return {};
}

void MemoryAccount::Level::add(std::size_t bytes) {
  current += bytes;
  peak = std::max(peak, current);
}

AllocationScope::AllocationScope(MemoryAccount* account, MemoryRole role)
    : outer_account_(current.account), outer_role_(current.role) {
  current = {account, role};
}

AllocationScope::~AllocationScope() {
  current = {outer_account_, outer_role_};
}

MemoryCharge::MemoryCharge(std::size_t bytes)
    : account_(current.account), role_(current.role), bytes_(bytes) {
  AllocationTrace::allocated(bytes_);
  if (account_ == nullptr) return;
  account_->total_.add(bytes_);
  account_->of(role_).add(bytes_);
}

MemoryCharge::~MemoryCharge() {
  if (bytes_ != 0) AllocationTrace::freed(bytes_);
  if (account_ == nullptr) return;
  account_->total_.current -= bytes_;
  account_->of(role_).current -= bytes_;
}

void MemoryCharge::move_to(MemoryRole role) {
  if (account_ == nullptr) return;
  account_->of(role_).current -= bytes_;
  account_->of(role).add(bytes_);
  role_ = role;
}

void MemoryCharge::swap(MemoryCharge& other) noexcept {
  std::swap(account_, other.account_);
  std::swap(role_, other.role_);
  std::swap(bytes_, other.bytes_);
}

}  // namespace sim
