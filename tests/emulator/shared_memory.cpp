#include "tests/emulator/shared_memory.h"

#include <string>

#include "tests/emulator/types.h"

namespace emulator {

namespace {

[[noreturn]] void race(std::uint64_t address, int warp, const std::string& other) {
  throw Fault(FaultKind::launch_failure, "race on byte " + std::to_string(address) +
                                             " of shared memory: warp " + std::to_string(warp) + " and " +
                                             other + " without a barrier in between");
}

}  // namespace

void SharedMemory::note(History& byte, std::uint64_t address, Access access, int warp) {
  const bool written_by_other = byte.write_epoch == epoch_ && byte.writer != warp;
  if (written_by_other && !(byte.written_atomically && access.atomic))
    race(address, warp, "a write of warp " + std::to_string(byte.writer));
  if (access.by_async_proxy && byte.writer >= 0 && fence_time_[byte.writer] <= byte.write_time)
    throw Fault(FaultKind::launch_failure, "byte " + std::to_string(address) +
                                               " of shared memory is read by the tensor cores, but warp " +
                                               std::to_string(byte.writer) +
                                               " wrote it without a fence.proxy.async since");
  if (!access.writes) {
    const bool again = byte.read_epoch == epoch_;
    byte.read_atomically = access.atomic && (!again || byte.read_atomically);
    byte.reader = again && byte.reader != warp ? several : static_cast<std::int8_t>(warp);
    byte.read_epoch = epoch_;
    return;
  }
  if (byte.read_epoch == epoch_ && byte.reader != warp && !(byte.read_atomically && access.atomic))
    race(address, warp,
         byte.reader == several ? "reads of other warps" : "a read of warp " + std::to_string(byte.reader));
  byte.write_epoch = epoch_;
  byte.write_time = time_;
  byte.writer = static_cast<std::int8_t>(warp);
  byte.written_atomically = access.atomic;
}

std::byte* SharedMemory::access(std::uint64_t address, std::uint64_t size, Access access, int warp) {
  if (address > bytes_.size() || size > bytes_.size() - address)
    throw Fault(FaultKind::illegal_address, "shared address " + std::to_string(address) + ", " +
                                                std::to_string(size) + " bytes, is outside the block's " +
                                                std::to_string(bytes_.size()) + " bytes");
  if (address % size != 0)
    throw Fault(FaultKind::misaligned_address, "shared address " + std::to_string(address) +
                                                   " is not a multiple of " + std::to_string(size));
  for (std::uint64_t i = address; i < address + size; ++i) note(history_[i], i, access, warp);
  return bytes_.data() + address;
}

void SharedMemory::pass_proxy_fence(int warp) {
  fence_time_[warp] = ++time_;
}

}  // namespace emulator
