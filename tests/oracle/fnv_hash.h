#pragma once
/// A checksum of bits, for what must be the same however it was computed.

#include <cstdint>

namespace oracle {

/// FNV-1a (Fowler, Noll and Vo), over whole numbers instead of bytes.
class FnvHash {
 public:
  void add(std::uint64_t bits) { state_ = (state_ ^ bits) * 0x100000001b3u; }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325u;
};

}  // namespace oracle
