/// PTX ISA, "Comparison and Selection Instructions" and their half-precision forms.

#include <array>

#include "tests/emulator/builder.h"
#include "tests/emulator/select.h"

namespace emulator {

namespace {

struct Comparison {
  std::string_view name;
  int accepted;
};
constexpr Comparison comparisons[] = {
    {"eq", equal},
    {"ne", less | greater},
    {"lt", less},
    {"le", less | equal},
    {"gt", greater},
    {"ge", greater | equal},
    {"lo", less},
    {"ls", less | equal},
    {"hi", greater},
    {"hs", greater | equal},
    {"equ", equal | unordered},
    {"neu", less | greater | unordered},
    {"ltu", less | unordered},
    {"leu", less | equal | unordered},
    {"gtu", greater | unordered},
    {"geu", greater | equal | unordered},
    {"num", less | equal | greater},
    {"nan", unordered},
};

void take_comparison(Builder& builder) {
  for (const Comparison& comparison : comparisons) {
    if (!builder.opcode.take(comparison.name)) continue;
    builder.out.modifiers.accepted = static_cast<std::uint8_t>(comparison.accepted);
    return;
  }
  builder.refuse("the emulator does not know this comparison");
}

template <typename Value>
bool compare(const Modifiers& modifiers, Value a, Value b) {
  if constexpr (std::is_floating_point_v<Value> || std::is_same_v<Value, Half>)
    return (modifiers.accepted & relation(flush(modifiers, a), flush(modifiers, b))) != 0;
  else
    return (modifiers.accepted & relation(a, b)) != 0;
}

template <typename Value>
struct Compare {
  static bool apply(const Modifiers& modifiers, Value a, Value b) { return compare(modifiers, a, b); }
};
template <typename Value>
struct CompareToMask {
  static std::uint32_t apply(const Modifiers& modifiers, Value a, Value b) {
    return compare(modifiers, a, b) ? ~0u : 0u;
  }
};
template <typename Value>
struct CompareToShortMask {
  static std::uint16_t apply(const Modifiers& modifiers, Value a, Value b) {
    return compare(modifiers, a, b) ? 0xffff : 0;
  }
};
template <typename Value>
struct CompareToFloat {
  static float apply(const Modifiers& modifiers, Value a, Value b) {
    return compare(modifiers, a, b) ? 1.0f : 0.0f;
  }
};
template <typename Value>
struct CompareToHalf {
  static Half apply(const Modifiers& modifiers, Value a, Value b) {
    return {static_cast<std::uint16_t>(compare(modifiers, a, b) ? 0x3c00 : 0)};
  }
};

std::array<bool, 2> compare_pairs(const Modifiers& modifiers, Half2 a, Half2 b) {
  return {compare(modifiers, Half{a.low}, Half{b.low}), compare(modifiers, Half{a.high}, Half{b.high})};
}
Half2 compare_pairs_to_half(const Modifiers& modifiers, Half2 a, Half2 b) {
  const auto [low, high] = compare_pairs(modifiers, a, b);
  return {static_cast<std::uint16_t>(low ? 0x3c00 : 0), static_cast<std::uint16_t>(high ? 0x3c00 : 0)};
}
Half2 compare_pairs_to_mask(const Modifiers& modifiers, Half2 a, Half2 b) {
  const auto [low, high] = compare_pairs(modifiers, a, b);
  return {static_cast<std::uint16_t>(low ? 0xffff : 0), static_cast<std::uint16_t>(high ? 0xffff : 0)};
}

/// setp.f16x2 p|q: one predicate for each half.
void compare_pairs_to_predicates(Warp& warp, const Instruction& instruction, Mask mask) {
  Lanes<bool> first(warp, instruction.at[0]), second(warp, instruction.at[3]);
  const Lanes<Half2> a(warp, instruction.at[1]), b(warp, instruction.at[2]);
  for_lanes(mask, [&](int lane) {
    const auto [low, high] = compare_pairs(instruction.modifiers, a[lane], b[lane]);
    first.set(lane, low);
    second.set(lane, high);
  });
}

template <template <typename> typename Operation>
Handler by_any(Type type) {
  if (type == Type::f16) return map<&Operation<Half>::apply>;
  return type == Type::f32 || type == Type::f64 ? by_float<Operation>(type) : by_integer<Operation>(type);
}

enum class Combination { none, both, either, different };

Combination take_combination(Opcode& opcode) {
  if (opcode.take("and")) return Combination::both;
  if (opcode.take("or")) return Combination::either;
  return opcode.take("xor") ? Combination::different : Combination::none;
}

/// at[0] (and at[2]) = the result (and its opposite), which is in at[0], combined with at[1].
template <Combination combination>
void combine(Warp& warp, const Instruction& instruction, Mask mask) {
  const Mask other = warp.predicate(instruction.at[1]);
  for (const int index : {0, 2}) {
    const Slot slot = instruction.at[static_cast<std::size_t>(index)];
    if (slot == no_slot) continue;
    Mask& result = warp.predicate(slot);
    const Mask value = combination == Combination::both     ? result & other
                       : combination == Combination::either ? result | other
                                                            : result ^ other;
    result = (result & ~mask) | (value & mask);
  }
}

Handler combining(Combination combination) {
  switch (combination) {
    case Combination::both:
      return &combine<Combination::both>;
    case Combination::either:
      return &combine<Combination::either>;
    default:
      return &combine<Combination::different>;
  }
}

/// setp.cmp[.bool].type p[|q], a, b[, c]: p is compared into a new register first, since c may be p.
Handler build_setp(Builder& builder) {
  take_comparison(builder);
  builder.take_flags();
  const Combination combination = take_combination(builder.opcode);
  const Type type = builder.opcode.take_type();
  builder.opcode.finish();
  Instruction& out = builder.out;
  const Slot first = builder.destination(0, Type::pred);
  Slot second = no_slot;
  if (const std::string_view name = builder.operand(0).second; !name.empty() && name != "_")
    second = builder.destination(Operand{.kind = Operand::Kind::name, .name = name}, Type::pred);
  out.at = {first, builder.source(1, type), builder.source(2, type), second, no_slot};
  if (type == Type::f16x2) {
    if (combination != Combination::none) builder.refuse("the emulator does not know this form of setp");
    if (second == no_slot) out.at[3] = builder.names.new_register(Type::pred);
    return &compare_pairs_to_predicates;
  }
  if (combination != Combination::none) {
    const Slot other = builder.source(3, Type::pred);
    const Slot kept = builder.names.new_register(Type::pred);
    builder.names.emit_before({.execute = map<&opposite>, .at = {kept, other}});
    builder.names.emit_before({.execute = map<&opposite>, .at = {kept, kept}});
    if (second != no_slot) builder.names.emit_after({.execute = map<&opposite>, .at = {second, first}});
    builder.names.emit_after({.execute = combining(combination), .at = {first, kept, second}});
  } else if (second != no_slot) {
    builder.names.emit_after({.execute = map<&opposite>, .at = {second, first}});
  }
  out.at[3] = no_slot;
  return by_any<Compare>(type);
}

Handler build_set(Builder& builder) {
  take_comparison(builder);
  builder.take_flags();
  const Type result = builder.opcode.take_type(), type = builder.opcode.take_type();
  builder.operands({result, type, type});
  if (type == Type::f16x2)
    return result == Type::f16x2 ? map<&compare_pairs_to_half> : map<&compare_pairs_to_mask>;
  if (result == Type::f16) return by_any<CompareToHalf>(type);
  if (result == Type::f32) return by_any<CompareToFloat>(type);
  return bytes_of(result) == 2 ? by_any<CompareToShortMask>(type) : by_any<CompareToMask>(type);
}

template <typename Value>
struct Select {
  static Value apply(Value a, Value b, bool choose_a) { return choose_a ? a : b; }
};
template <typename Value>
struct SelectBySign {
  static Value apply(Value a, Value b, std::int32_t c) { return c >= 0 ? a : b; }
};
template <typename Value>
struct SelectByFloatSign {
  static Value apply(const Modifiers& modifiers, Value a, Value b, float c) {
    return flush(modifiers, c) >= 0 ? a : b;
  }
};

Handler build_selp(Builder& builder) {
  const Type type = builder.opcode.take_type();
  builder.operands({type, type, type, Type::pred});
  return by_size<Select>(type);
}

Handler build_slct(Builder& builder) {
  builder.take_flags();
  const Type type = builder.opcode.take_type(), chooser = builder.opcode.take_type();
  builder.operands({type, type, type, chooser});
  return chooser == Type::f32 ? by_size<SelectByFloatSign>(type) : by_size<SelectBySign>(type);
}

constexpr Row rows[] = {
    {"setp", any_type, build_setp},
    {"set", any_type, build_set},
    {"selp", any_type, build_selp},
    {"slct", any_type, build_slct},
};

}  // namespace

std::span<const Row> comparison_rows() {
  return rows;
}

}  // namespace emulator
