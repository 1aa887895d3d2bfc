#pragma once
/// FNV-1a of 64 bits, by which results of two processors are compared.

#include <cstdint>

namespace halflab::page {

class Hash {
 public:
  void add(std::uint64_t value, int bits) {
    for (int done = 0; done < bits; done += 8) state_ = (state_ ^ (value >> done & 0xff)) * 0x100000001b3;
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325;
};

}  // namespace halflab::page
