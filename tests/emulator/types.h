#pragma once
/// The fundamental types of PTX (PTX ISA, "Fundamental Types") and the errors of the emulator.

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace emulator {

enum class Type { none, pred, b8, u8, s8, b16, u16, s16, f16, f16x2, b32, u32, s32, f32, b64, u64, s64, f64 };

/// The type of that name, which has no dot; none if there is no such type.
Type type_named(std::string_view name);

constexpr int bytes_of(Type type) {
  if (type == Type::none) return 0;
  if (type == Type::pred) return 4;  // one bit a lane
  if (type <= Type::s8) return 1;
  if (type <= Type::f16) return 2;
  return type <= Type::f32 ? 4 : 8;
}
constexpr bool is_floating(Type type) {
  return type == Type::f16 || type == Type::f32 || type == Type::f64;
}
constexpr bool is_signed(Type type) {
  return type == Type::s8 || type == Type::s16 || type == Type::s32 || type == Type::s64;
}

template <int bytes>
using UnsignedOf =
    std::conditional_t<bytes == 1, std::uint8_t,
                       std::conditional_t<bytes == 2, std::uint16_t,
                                          std::conditional_t<bytes == 4, std::uint32_t, std::uint64_t>>>;

/// A binary16 value in a register.
struct Half {
  std::uint16_t code = 0;
};
/// Two of them; the first is in the low bits.
struct Half2 {
  std::uint16_t low = 0;
  std::uint16_t high = 0;
};

/// A program that the emulator refuses: unknown PTX, a limit of the device.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What kind of error a GPU would report.
enum class FaultKind { illegal_address, misaligned_address, launch_failure };

/// An error of a kernel while it runs.
struct Fault : std::runtime_error {
  Fault(FaultKind kind, const std::string& what) : std::runtime_error(what), kind(kind) {}
  FaultKind kind;
};

}  // namespace emulator
