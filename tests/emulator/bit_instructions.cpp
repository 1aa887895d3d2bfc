/// PTX ISA, "Logic and Shift Instructions" and the bit-field instructions of integer arithmetic.

#include "tests/emulator/builder.h"
#include "tests/emulator/select.h"

namespace emulator {

namespace {

template <typename Value>
struct And {
  static Value apply(Value a, Value b) { return static_cast<Value>(a & b); }
};
template <typename Value>
struct Or {
  static Value apply(Value a, Value b) { return static_cast<Value>(a | b); }
};
template <typename Value>
struct Xor {
  static Value apply(Value a, Value b) { return static_cast<Value>(a ^ b); }
};
template <typename Value>
struct Not {
  static Value apply(Value a) { return static_cast<Value>(~a); }
};
template <typename Value>
struct LogicalNot {
  static Value apply(Value a) { return a == 0; }
};
template <typename Value>
struct ShiftLeft {
  static Value apply(Value a, std::uint32_t count) {
    return count >= 8 * sizeof(Value) ? Value{0} : wrapped<Value>(as_wide(a) << count);
  }
};
/// Arithmetic for signed values.
template <typename Value>
struct ShiftRight {
  static Value apply(Value a, std::uint32_t count) {
    constexpr std::uint32_t bits = 8 * sizeof(Value);
    if (count >= bits) return static_cast<Value>(a < 0 ? -1 : 0);
    return static_cast<Value>(a >> count);
  }
};

std::uint32_t funnel_count(const Modifiers& modifiers, std::uint32_t count) {
  return modifiers.wraps ? count & 31 : std::min(count, 32u);
}
std::uint32_t funnel_left(const Modifiers& modifiers, std::uint32_t low, std::uint32_t high,
                          std::uint32_t count) {
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  return static_cast<std::uint32_t>(both << funnel_count(modifiers, count) >> 32);
}
std::uint32_t funnel_right(const Modifiers& modifiers, std::uint32_t low, std::uint32_t high,
                           std::uint32_t count) {
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  return static_cast<std::uint32_t>(both >> funnel_count(modifiers, count));
}

template <typename Value>
struct ExtractField {
  static Value apply(Value a, std::uint32_t position, std::uint32_t length) {
    constexpr std::uint32_t bits = 8 * sizeof(Value);
    position &= 0xff;
    length &= 0xff;
    if (length == 0) return 0;
    const auto unsigned_a = static_cast<std::make_unsigned_t<Value>>(a);
    const std::uint64_t field = position >= bits ? 0 : std::uint64_t{unsigned_a} >> position;
    const std::uint64_t mask = length >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << length) - 1;
    if constexpr (std::is_signed_v<Value>) {
      const std::uint32_t sign_at = std::min(position + length - 1, bits - 1);
      if (unsigned_a >> sign_at & 1)
        return wrapped<Value>((field & mask) | ~(mask & top_cut(position, bits)));
    }
    return wrapped<Value>(field & mask);
  }

 private:
  /// The bits that a shift right by `position` can leave.
  static std::uint64_t top_cut(std::uint32_t position, std::uint32_t bits) {
    return position >= bits ? 0
                            : (bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1) >> position;
  }
};

template <typename Value>
struct InsertField {
  static Value apply(Value a, Value b, std::uint32_t position, std::uint32_t length) {
    constexpr std::uint32_t bits = 8 * sizeof(Value);
    position &= 0xff;
    length &= 0xff;
    if (position >= bits) return b;
    const std::uint64_t field = length >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << length) - 1;
    const std::uint64_t mask = field << position;
    return wrapped<Value>((as_wide(b) & ~mask) | (as_wide(a) << position & mask));
  }
};

template <typename Value>
struct CountLeadingZeros {
  static std::uint32_t apply(Value a) { return static_cast<std::uint32_t>(std::countl_zero(a)); }
};
template <typename Value>
struct CountOnes {
  static std::uint32_t apply(Value a) { return static_cast<std::uint32_t>(std::popcount(a)); }
};
template <typename Value>
struct ReverseBits {
  static Value apply(Value a) {
    Value result = 0;
    for (std::size_t i = 0; i < 8 * sizeof(Value); ++i) result |= (a >> i & 1) << (8 * sizeof(Value) - 1 - i);
    return result;
  }
};
template <typename Value>
struct FindLeading {
  static std::uint32_t apply(const Modifiers& modifiers, Value a) {
    const auto code = static_cast<std::make_unsigned_t<Value>>(a < 0 ? ~a : a);
    if (code == 0) return ~0u;
    const int shift = std::countl_zero(code);
    return static_cast<std::uint32_t>(modifiers.wraps ? shift
                                                      : static_cast<int>(8 * sizeof(Value)) - 1 - shift);
  }
};

/// The general mode; the others are not emitted by nvcc's intrinsics.
std::uint32_t permute_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t selectors) {
  const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
  std::uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t selector = selectors >> 4 * i & 0xf;
    std::uint32_t byte = bytes >> 8 * (selector & 7) & 0xff;
    if (selector & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << 8 * i;
  }
  return result;
}

void lop3(Warp& warp, const Instruction& instruction, Mask mask) {
  Lanes<std::uint32_t> result(warp, instruction.at[0]);
  const Lanes<std::uint32_t> a(warp, instruction.at[1]), b(warp, instruction.at[2]),
      c(warp, instruction.at[3]);
  for_lanes(mask, [&](int lane) {
    std::uint32_t value = 0;
    for (int i = 0; i < 8; ++i) {
      if (!(instruction.immediate >> i & 1)) continue;
      value |= (i & 4 ? a[lane] : ~a[lane]) & (i & 2 ? b[lane] : ~b[lane]) & (i & 1 ? c[lane] : ~c[lane]);
    }
    result.set(lane, value);
  });
}

template <Mask (*function)(Mask, Mask)>
void predicates(Warp& warp, const Instruction& instruction, Mask mask) {
  const Mask value = function(warp.predicate(instruction.at[1]), warp.predicate(instruction.at[2]));
  Mask& result = warp.predicate(instruction.at[0]);
  result = (result & ~mask) | (value & mask);
}
Mask both(Mask a, Mask b) {
  return a & b;
}
Mask either(Mask a, Mask b) {
  return a | b;
}
Mask different(Mask a, Mask b) {
  return a ^ b;
}

template <template <typename> typename Operation, Mask (*function)(Mask, Mask)>
Handler build_logic(Builder& builder) {
  const Type type = builder.opcode.take_type();
  builder.operands({type, type, type});
  return type == Type::pred ? &predicates<function> : by_size<Operation>(type);
}
Handler build_not(Builder& builder) {
  const Type type = builder.opcode.take_type();
  builder.operands({type, type});
  return type == Type::pred ? map<&opposite> : by_size<Not>(type);
}
Handler build_cnot(Builder& builder) {
  const Type type = builder.opcode.take_type();
  builder.operands({type, type});
  return by_size<LogicalNot>(type);
}
Handler build_shl(Builder& builder) {
  const Type type = builder.opcode.take_type();
  builder.operands({type, type, Type::u32});
  return by_size<ShiftLeft>(type);
}
Handler build_shr(Builder& builder) {
  const Type type = builder.opcode.take_type();
  builder.operands({type, type, Type::u32});
  return by_integer<ShiftRight>(type);
}
Handler build_shf(Builder& builder) {
  const bool left = builder.opcode.take("l");
  builder.opcode.ignore({"r", "clamp"});
  builder.out.modifiers.wraps = builder.opcode.take("wrap");
  builder.opcode.take_type();
  builder.operands({Type::b32, Type::b32, Type::b32, Type::u32});
  return left ? map<&funnel_left> : map<&funnel_right>;
}
Handler build_lop3(Builder& builder) {
  builder.opcode.take_type();
  builder.opcode.finish();
  builder.out.at = {builder.destination(0, Type::b32), builder.source(1, Type::b32),
                    builder.source(2, Type::b32), builder.source(3, Type::b32), no_slot};
  builder.out.immediate = builder.operand(4).value;
  return &lop3;
}
Handler build_bfe(Builder& builder) {
  const Type type = builder.opcode.take_type();
  builder.operands({type, type, Type::u32, Type::u32});
  return by_integer<ExtractField>(type);
}
Handler build_bfi(Builder& builder) {
  const Type type = builder.opcode.take_type();
  builder.operands({type, type, type, Type::u32, Type::u32});
  return by_size<InsertField>(type);
}
Handler build_bfind(Builder& builder) {
  builder.out.modifiers.wraps = builder.opcode.take("shiftamt");
  const Type type = builder.opcode.take_type();
  builder.operands({
      Type::u32,
      type,
  });
  return by_integer<FindLeading>(type);
}
template <template <typename> typename Operation>
Handler build_count(Builder& builder) {
  const Type type = builder.opcode.take_type();
  builder.operands({Type::u32, type});
  return by_size<Operation>(type);
}
Handler build_brev(Builder& builder) {
  const Type type = builder.opcode.take_type();
  builder.operands({type, type});
  return by_size<ReverseBits>(type);
}
Handler build_prmt(Builder& builder) {
  builder.opcode.take_type();
  builder.operands({Type::b32, Type::b32, Type::b32, Type::b32});
  return map<&permute_bytes>;
}

constexpr Row rows[] = {
    {"and", any_type, build_logic<And, both>},
    {"or", any_type, build_logic<Or, either>},
    {"xor", any_type, build_logic<Xor, different>},
    {"not", any_type, build_not},
    {"cnot", any_type, build_cnot},
    {"shl", any_type, build_shl},
    {"shr", any_type, build_shr},
    {"shf", any_type, build_shf},
    {"lop3", any_type, build_lop3},
    {"bfe", any_type, build_bfe},
    {"bfi", any_type, build_bfi},
    {"bfind", any_type, build_bfind},
    {"clz", any_type, build_count<CountLeadingZeros>},
    {"popc", any_type, build_count<CountOnes>},
    {"brev", any_type, build_brev},
    {"prmt", any_type, build_prmt},
};

}  // namespace

std::span<const Row> bit_rows() {
  return rows;
}

}  // namespace emulator
