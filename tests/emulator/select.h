#pragma once
/// From PTX types to C++ types, and integer arithmetic that wraps.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "tests/emulator/floating_point.h"
#include "tests/emulator/warp.h"

namespace emulator {

template <typename Value>
using DoubleWidth = std::conditional_t<std::is_signed_v<Value>,
                                       std::conditional_t<sizeof(Value) == 2, std::int32_t, std::int64_t>,
                                       std::conditional_t<sizeof(Value) == 2, std::uint32_t, std::uint64_t>>;

/// Holds the product of two values.
template <typename Value>
using Wide = std::conditional_t<std::is_signed_v<Value>, __int128, unsigned __int128>;

template <typename Value>
constexpr std::uint64_t as_wide(Value a) {
  return static_cast<std::uint64_t>(a);
}
template <typename Value>
constexpr Value wrapped(std::uint64_t a) {
  return static_cast<Value>(a);
}

template <template <typename> typename Operation>
Handler by_integer(Type type) {
  switch (type) {
    case Type::b16:
    case Type::u16:
      return map<&Operation<std::uint16_t>::apply>;
    case Type::s16:
      return map<&Operation<std::int16_t>::apply>;
    case Type::b32:
    case Type::u32:
      return map<&Operation<std::uint32_t>::apply>;
    case Type::s32:
      return map<&Operation<std::int32_t>::apply>;
    case Type::b64:
    case Type::u64:
      return map<&Operation<std::uint64_t>::apply>;
    case Type::s64:
      return map<&Operation<std::int64_t>::apply>;
    default:
      throw Unsupported("the emulator does not know this instruction for this type");
  }
}

/// Without 64 bits.
template <template <typename> typename Operation>
Handler by_narrow_integer(Type type) {
  switch (type) {
    case Type::u16:
      return map<&Operation<std::uint16_t>::apply>;
    case Type::s16:
      return map<&Operation<std::int16_t>::apply>;
    case Type::u32:
      return map<&Operation<std::uint32_t>::apply>;
    case Type::s32:
      return map<&Operation<std::int32_t>::apply>;
    default:
      throw Unsupported("the emulator does not know this instruction for this type");
  }
}

/// By the number of bits alone.
template <template <typename> typename Operation>
Handler by_size(Type type) {
  switch (bytes_of(type)) {
    case 2:
      return map<&Operation<std::uint16_t>::apply>;
    case 4:
      return map<&Operation<std::uint32_t>::apply>;
    case 8:
      return map<&Operation<std::uint64_t>::apply>;
    default:
      throw Unsupported("the emulator does not know this instruction for this type");
  }
}

template <template <typename> typename Operation>
Handler by_float(Type type) {
  switch (type) {
    case Type::f32:
      return map<&Operation<float>::apply>;
    case Type::f64:
      return map<&Operation<double>::apply>;
    default:
      throw Unsupported("the emulator does not know this instruction for this type");
  }
}

}  // namespace emulator
