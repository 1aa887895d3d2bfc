#include "experiments/gpu/validate_gpu/ledger.h"

namespace experiments::validate_gpu {

void Ledger::enter(std::size_t row, std::uint32_t shard, const ShardResult& result) {
  constexpr std::chrono::seconds between_writes{20};
  const std::scoped_lock lock(mutex_);
  shards_.set(row, shard, result);
  changed_ = true;
  if (!written_ || std::chrono::steady_clock::now() - *written_ >= between_writes) write();
}

void Ledger::save() {
  if (changed_) write();
}

void Ledger::write() {
  shards_.write(file_);
  written_ = std::chrono::steady_clock::now();
  changed_ = false;
}

}  // namespace experiments::validate_gpu
