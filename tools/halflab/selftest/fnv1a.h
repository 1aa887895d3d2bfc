#pragma once
/// FNV-1a of 64 bits, by which results of two processors, builds or releases are compared.

#include <bit>
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

#include "fp16/rounding.h"

namespace halflab {

/// The hash FNV-1a of 64 bits (Fowler, Noll and Vo) of the bytes that are added, in their order: of a number the bytes of
/// its bits, the least significant first.
class Fnv1a {
 public:
  void add(std::uint64_t bits, int width) {
    for (int done = 0; done < width; done += 8) state_ = (state_ ^ (bits >> done & 0xff)) * 0x100000001b3;
  }
  void add(std::string_view bytes) {
    for (const char byte : bytes) add(static_cast<unsigned char>(byte), 8);
  }
  template <std::unsigned_integral Code>
  void add(std::span<const Code> codes) {
    for (const Code code : codes) add(code, 8 * sizeof(Code));
  }
  void add(std::span<const float> values) {
    for (const float value : values) add(std::bit_cast<std::uint32_t>(value), 32);
  }
  void add(std::span<const double> values) {
    for (const double value : values) add(std::bit_cast<std::uint64_t>(value), 64);
  }
  /// One byte: inexact, underflow, overflow, divide by zero and invalid, from the lowest bit on.
  void add(const fp16::Flags& flags) {
    add(flags.inexact | flags.underflow << 1 | flags.overflow << 2 | flags.divide_by_zero << 3 |
            flags.invalid << 4,
        8);
  }

  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325;
};

}  // namespace halflab
