/// PTX ISA, "Integer Arithmetic Instructions" and "Extended-Precision Arithmetic Instructions".

#include <limits>

#include "tests/emulator/builder.h"
#include "tests/emulator/select.h"

namespace emulator {

namespace {

template <typename Value>
struct Add {
  static Value apply(Value a, Value b) { return wrapped<Value>(as_wide(a) + as_wide(b)); }
};
template <typename Value>
struct Subtract {
  static Value apply(Value a, Value b) { return wrapped<Value>(as_wide(a) - as_wide(b)); }
};
template <typename Value>
struct MultiplyLow {
  static Value apply(Value a, Value b) { return wrapped<Value>(as_wide(a) * as_wide(b)); }
};
template <typename Value>
struct MultiplyHigh {
  static Value apply(Value a, Value b) {
    return static_cast<Value>(Wide<Value>{a} * Wide<Value>{b} >> 8 * sizeof(Value));
  }
};
template <typename Value>
struct MultiplyWide {
  static DoubleWidth<Value> apply(Value a, Value b) {
    return static_cast<DoubleWidth<Value>>(DoubleWidth<Value>{a} * DoubleWidth<Value>{b});
  }
};
template <typename Value>
struct MultiplyAddLow {
  static Value apply(Value a, Value b, Value c) {
    return wrapped<Value>(as_wide(a) * as_wide(b) + as_wide(c));
  }
};
template <typename Value>
struct MultiplyAddHigh {
  static Value apply(Value a, Value b, Value c) {
    return wrapped<Value>(as_wide(MultiplyHigh<Value>::apply(a, b)) + as_wide(c));
  }
};
template <typename Value>
struct MultiplyAddWide {
  static DoubleWidth<Value> apply(Value a, Value b, DoubleWidth<Value> c) {
    return wrapped<DoubleWidth<Value>>(as_wide(MultiplyWide<Value>::apply(a, b)) + as_wide(c));
  }
};
template <typename Value>
struct Divide {
  static Value apply(Value a, Value b) {
    if (b == 0) return static_cast<Value>(~Value{0});
    if (std::is_signed_v<Value> && b == static_cast<Value>(-1)) return wrapped<Value>(0 - as_wide(a));
    return static_cast<Value>(a / b);
  }
};
template <typename Value>
struct Remainder {
  static Value apply(Value a, Value b) {
    if (b == 0) return a;
    if (std::is_signed_v<Value> && b == static_cast<Value>(-1)) return 0;
    return static_cast<Value>(a % b);
  }
};
template <typename Value>
struct Absolute {
  static Value apply(Value a) { return a < 0 ? wrapped<Value>(0 - as_wide(a)) : a; }
};
template <typename Value>
struct Negate {
  static Value apply(Value a) { return wrapped<Value>(0 - as_wide(a)); }
};
template <typename Value>
struct Minimum {
  static Value apply(const Modifiers& modifiers, Value a, Value b) {
    const Value result = a < b ? a : b;
    return modifiers.relu && result < 0 ? Value{0} : result;
  }
};
template <typename Value>
struct Maximum {
  static Value apply(const Modifiers& modifiers, Value a, Value b) {
    const Value result = a > b ? a : b;
    return modifiers.relu && result < 0 ? Value{0} : result;
  }
};
template <typename Value>
struct AbsoluteDifference {
  static Value apply(Value a, Value b, Value c) {
    return wrapped<Value>(as_wide(c) + (a < b ? as_wide(b) - as_wide(a) : as_wide(a) - as_wide(b)));
  }
};

std::int32_t saturated(std::int64_t a) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(a, std::numeric_limits<std::int32_t>::min(),
                                                            std::numeric_limits<std::int32_t>::max()));
}
std::int32_t add_saturated(std::int32_t a, std::int32_t b) {
  return saturated(std::int64_t{a} + b);
}
std::int32_t subtract_saturated(std::int32_t a, std::int32_t b) {
  return saturated(std::int64_t{a} - b);
}
std::int32_t multiply_add_saturated(std::int32_t a, std::int32_t b, std::int32_t c) {
  return saturated((std::int64_t{a} * b >> 32) + c);
}

/// at[0] = at[1] + at[2] with the carries of `reads` going in and, if asked for, the carries out noted.
template <typename Value, bool subtract, bool reads, bool writes>
void add_with_carry(Warp& warp, const Instruction& instruction, Mask mask) {
  Lanes<Value> result(warp, instruction.at[0]);
  const Lanes<Value> a(warp, instruction.at[1]), b(warp, instruction.at[2]);
  for_lanes(mask, [&](int lane) {
    const unsigned __int128 carry = reads ? warp.carry >> lane & 1 : 0;
    const unsigned __int128 sum = subtract ? (unsigned __int128){a[lane]} - b[lane] - carry
                                           : (unsigned __int128){a[lane]} + b[lane] + carry;
    result.set(lane, static_cast<Value>(sum));
    const Mask carried = static_cast<Mask>(sum >> 8 * sizeof(Value) & 1);
    if (writes) warp.carry = (warp.carry & ~(Mask{1} << lane)) | carried << lane;
  });
}

template <typename Value, bool high, bool reads, bool writes>
void multiply_add_with_carry(Warp& warp, const Instruction& instruction, Mask mask) {
  Lanes<Value> result(warp, instruction.at[0]);
  const Lanes<Value> a(warp, instruction.at[1]), b(warp, instruction.at[2]), c(warp, instruction.at[3]);
  for_lanes(mask, [&](int lane) {
    const unsigned __int128 product =
        high ? static_cast<unsigned __int128>(MultiplyHigh<Value>::apply(a[lane], b[lane]))
             : static_cast<unsigned __int128>(MultiplyLow<Value>::apply(a[lane], b[lane]));
    const unsigned __int128 sum = product + c[lane] + (reads ? warp.carry >> lane & 1 : 0);
    result.set(lane, static_cast<Value>(sum));
    const Mask carried = static_cast<Mask>(sum >> 8 * sizeof(Value) & 1);
    if (writes) warp.carry = (warp.carry & ~(Mask{1} << lane)) | carried << lane;
  });
}

template <typename Value, bool subtract>
Handler carry_sum(bool reads, bool writes) {
  if (reads)
    return writes ? &add_with_carry<Value, subtract, true, true>
                  : &add_with_carry<Value, subtract, true, false>;
  return &add_with_carry<Value, subtract, false, true>;
}

template <bool subtract>
Handler build_carry_sum(Builder& builder, bool reads, bool writes) {
  const Type type = builder.opcode.take_type();
  builder.operands({type, type, type});
  return bytes_of(type) == 4 ? carry_sum<std::uint32_t, subtract>(reads, writes)
                             : carry_sum<std::uint64_t, subtract>(reads, writes);
}

Handler build_add(Builder& builder) {
  if (builder.opcode.take("cc")) return build_carry_sum<false>(builder, false, true);
  const bool saturate = builder.opcode.take("sat");
  const Type type = builder.opcode.take_type();
  builder.operands({type, type, type});
  return saturate ? map<&add_saturated> : by_integer<Add>(type);
}
Handler build_sub(Builder& builder) {
  if (builder.opcode.take("cc")) return build_carry_sum<true>(builder, false, true);
  const bool saturate = builder.opcode.take("sat");
  const Type type = builder.opcode.take_type();
  builder.operands({type, type, type});
  return saturate ? map<&subtract_saturated> : by_integer<Subtract>(type);
}
Handler build_addc(Builder& builder) {
  return build_carry_sum<false>(builder, true, builder.opcode.take("cc"));
}
Handler build_subc(Builder& builder) {
  return build_carry_sum<true>(builder, true, builder.opcode.take("cc"));
}

Type double_width(Type type) {
  switch (type) {
    case Type::u16:
      return Type::u32;
    case Type::s16:
      return Type::s32;
    case Type::u32:
      return Type::u64;
    default:
      return Type::s64;
  }
}

Handler build_mul(Builder& builder) {
  const bool wide = builder.opcode.take("wide"), high = builder.opcode.take("hi");
  builder.opcode.ignore({"lo"});
  const Type type = builder.opcode.take_type();
  builder.operands({wide ? double_width(type) : type, type, type});
  if (wide) return by_narrow_integer<MultiplyWide>(type);
  return high ? by_integer<MultiplyHigh>(type) : by_integer<MultiplyLow>(type);
}

template <bool reads>
Handler build_carry_mad(Builder& builder, bool high, bool writes) {
  const Type type = builder.opcode.take_type();
  builder.operands({type, type, type, type});
  const auto choose = [&]<typename Unsigned, typename Signed>() -> Handler {
    if (!high)
      return writes ? &multiply_add_with_carry<Unsigned, false, reads, true>
                    : &multiply_add_with_carry<Unsigned, false, reads, false>;
    if (is_signed(type)) return nullptr;
    return writes ? &multiply_add_with_carry<Unsigned, true, reads, true>
                  : &multiply_add_with_carry<Unsigned, true, reads, false>;
  };
  const Handler result = bytes_of(type) == 4 ? choose.template operator()<std::uint32_t, std::int32_t>()
                                             : choose.template operator()<std::uint64_t, std::int64_t>();
  if (result == nullptr) builder.refuse("the emulator does not know signed .hi with carries");
  return result;
}

Handler build_mad(Builder& builder) {
  const bool wide = builder.opcode.take("wide"), high = builder.opcode.take("hi");
  const bool saturate = builder.opcode.take("sat");
  builder.opcode.ignore({"lo"});
  if (builder.opcode.take("cc")) return build_carry_mad<false>(builder, high, true);
  const Type type = builder.opcode.take_type();
  const Type sum = wide ? double_width(type) : type;
  builder.operands({sum, type, type, sum});
  if (saturate) return map<&multiply_add_saturated>;
  if (wide) return by_narrow_integer<MultiplyAddWide>(type);
  return high ? by_integer<MultiplyAddHigh>(type) : by_integer<MultiplyAddLow>(type);
}
Handler build_madc(Builder& builder) {
  const bool high = builder.opcode.take("hi");
  builder.opcode.ignore({"lo"});
  return build_carry_mad<true>(builder, high, builder.opcode.take("cc"));
}

template <template <typename> typename Operation, int sources>
Handler build_plain(Builder& builder) {
  builder.take_flags();
  const Type type = builder.opcode.take_type();
  if constexpr (sources == 1) builder.operands({type, type});
  if constexpr (sources == 2) builder.operands({type, type, type});
  if constexpr (sources == 3) builder.operands({type, type, type, type});
  return by_integer<Operation>(type);
}

constexpr Row rows[] = {
    {"add", integer_types, build_add},
    {"sub", integer_types, build_sub},
    {"addc", integer_types, build_addc},
    {"subc", integer_types, build_subc},
    {"mul", integer_types, build_mul},
    {"mad", integer_types, build_mad},
    {"madc", integer_types, build_madc},
    {"sad", integer_types, build_plain<AbsoluteDifference, 3>},
    {"div", integer_types, build_plain<Divide, 2>},
    {"rem", integer_types, build_plain<Remainder, 2>},
    {"abs", integer_types, build_plain<Absolute, 1>},
    {"neg", integer_types, build_plain<Negate, 1>},
    {"min", integer_types, build_plain<Minimum, 2>},
    {"max", integer_types, build_plain<Maximum, 2>},
};

}  // namespace

std::span<const Row> integer_rows() {
  return rows;
}

}  // namespace emulator
