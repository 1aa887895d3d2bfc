#include "tests/emulator/memory.h"

#include <algorithm>
#include <cstring>
#include <sstream>

namespace emulator {

namespace {

constexpr std::uint64_t quarantine_bytes = 64 << 20;
constexpr std::uint64_t alignment = 256;

std::string hex(std::uint64_t value) {
  std::ostringstream text;
  text << "0x" << std::hex << value;
  return text.str();
}

void check_alignment(std::uint64_t address, std::uint64_t size) {
  if (address % size == 0) return;
  throw Fault(FaultKind::misaligned_address,
              "address " + hex(address) + " is not a multiple of " + std::to_string(size));
}

std::byte* access_local(Warp& warp, int lane, std::uint64_t address, std::uint64_t size) {
  const std::uint64_t available = warp.block.launch.program.local_bytes;
  if (address > available || size > available - address)
    throw Fault(FaultKind::illegal_address, "local address " + hex(address) + ", " + std::to_string(size) +
                                                " bytes, is outside the thread's " +
                                                std::to_string(available) + " bytes");
  check_alignment(address, size);
  return warp.block.local_of(warp, lane) + address;
}

std::byte* access_parameter(Warp& warp, std::uint64_t address, std::uint64_t size, bool writes) {
  const std::vector<std::byte>& parameters = warp.block.launch.parameters;
  if (writes || address > parameters.size() || size > parameters.size() - address)
    throw Fault(FaultKind::illegal_address, "parameter address " + hex(address) + ", " +
                                                std::to_string(size) + " bytes, may not be " +
                                                (writes ? "written" : "read"));
  check_alignment(address, size);
  return const_cast<std::byte*>(parameters.data()) + address;
}

}  // namespace

std::byte* GlobalMemory::allocate(std::uint64_t size, Owner owner) {
  Block block{.size = size, .owner = owner};
  block.bytes = std::make_unique_for_overwrite<std::byte[]>(std::max<std::uint64_t>(size, 1) + alignment);
  const auto address = reinterpret_cast<std::uint64_t>(block.bytes.get());
  block.begin = (address + alignment - 1) / alignment * alignment;
  auto* begin = reinterpret_cast<std::byte*>(block.begin);
  std::memset(begin, static_cast<int>(poison), size);
  if (owner == Owner::program) {
    live_bytes_ += size;
    ++live_allocations_;
  }
  blocks_.emplace(block.begin, std::move(block));
  return begin;
}

bool GlobalMemory::free(const void* address, Owner owner) {
  const auto found = blocks_.find(reinterpret_cast<std::uint64_t>(address));
  if (found == blocks_.end() || found->second.owner != owner) return false;
  if (owner == Owner::program) {
    --live_allocations_;
    live_bytes_ -= found->second.size;
  }
  freed_bytes_ += found->second.size;
  freed_.push_back(std::move(found->second));
  for (; freed_bytes_ > quarantine_bytes; freed_.pop_front()) freed_bytes_ -= freed_.front().size;
  blocks_.erase(found);
  last_ = nullptr;
  return true;
}

const GlobalMemory::Block* GlobalMemory::find(std::uint64_t address) const {
  if (last_ != nullptr && address - last_->begin < last_->size) return last_;
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return nullptr;
  const Block& block = std::prev(after)->second;
  if (address - block.begin >= block.size) return nullptr;
  return last_ = &block;
}

bool GlobalMemory::contains(const void* address, std::uint64_t size) const {
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  const Block* block = find(begin);
  return block != nullptr && size <= block->begin + block->size - begin;
}

std::byte* GlobalMemory::access(std::uint64_t address, std::uint64_t size, bool writes) {
  const Block* block = find(address);
  if (block == nullptr || size > block->begin + block->size - address) {
    std::string where = "is in no live allocation";
    if (block != nullptr)
      where = "reaches beyond the end of an allocation of " + std::to_string(block->size) + " bytes";
    for (const Block& old : freed_) {
      if (address - old.begin < old.size) where = "is in freed memory";
    }
    throw Fault(FaultKind::illegal_address,
                "global address " + hex(address) + ", " + std::to_string(size) + " bytes, " + where);
  }
  if (writes && block->owner == Owner::constant)
    throw Fault(FaultKind::illegal_address, "global address " + hex(address) + " is that of a constant");
  check_alignment(address, size);
  return reinterpret_cast<std::byte*>(address);
}

GlobalMemory& global_memory() {
  static GlobalMemory memory;
  return memory;
}

std::byte* access_memory(Warp& warp, int lane, Space space, std::uint64_t address, std::uint64_t size,
                         Access access) {
  if (space == Space::generic || space == Space::parameter) {
    for (const Space other : {Space::shared, Space::local, Space::parameter}) {
      if (address - window_of(other) >= window_size) continue;
      space = other;
      address -= window_of(other);
      break;
    }
  }
  switch (space) {
    case Space::shared:
      return warp.block.shared.access(address, size, access, warp.index);
    case Space::local:
      return access_local(warp, lane, address, size);
    case Space::parameter:
      return access_parameter(warp, address, size, access.writes);
    default:
      return global_memory().access(address, size, access.writes);
  }
}

}  // namespace emulator
