/// atom and red. The lanes of a warp follow one another.

#include "tests/emulator/builder.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/select.h"
#include "tests/emulator/spaces.h"

namespace emulator {

namespace {

/// What is stored in place of `old`; b and c are the operands.
template <typename Value>
using Update = Value (*)(Value old, Value b, Value c);

template <typename Value>
Value add(Value old, Value b, Value) {
  if constexpr (std::is_same_v<Value, Half>) {
    return finish(Modifiers{}, half_from_double(to_double(old) + to_double(b), Rounding::nearest_even));
  } else if constexpr (std::is_same_v<Value, Half2>) {
    return {add(Half{old.low}, Half{b.low}, Half{}).code, add(Half{old.high}, Half{b.high}, Half{}).code};
  } else if constexpr (std::is_floating_point_v<Value>) {
    return finish(Modifiers{}, old + b);
  } else {
    return wrapped<Value>(as_wide(old) + as_wide(b));
  }
}
template <typename Value>
Value minimum(Value old, Value b, Value) {
  return b < old ? b : old;
}
template <typename Value>
Value maximum(Value old, Value b, Value) {
  return b > old ? b : old;
}
template <typename Value>
Value both(Value old, Value b, Value) {
  return old & b;
}
template <typename Value>
Value either(Value old, Value b, Value) {
  return old | b;
}
template <typename Value>
Value different(Value old, Value b, Value) {
  return old ^ b;
}
template <typename Value>
Value exchange(Value, Value b, Value) {
  return b;
}
template <typename Value>
Value compare_and_swap(Value old, Value b, Value c) {
  return old == b ? c : old;
}
std::uint32_t increment(std::uint32_t old, std::uint32_t b, std::uint32_t) {
  return old >= b ? 0 : old + 1;
}
std::uint32_t decrement(std::uint32_t old, std::uint32_t b, std::uint32_t) {
  return old == 0 || old > b ? b : old - 1;
}

/// at: old value, address, b, c.
template <typename Value, Update<Value> update>
void atomic(Warp& warp, const Instruction& instruction, Mask mask) {
  Lanes<Value> result(warp, instruction.at[0]);
  const Lanes<std::uint64_t> address(warp, instruction.at[1]);
  const Lanes<Value> b(warp, instruction.at[2]), c(warp, instruction.at[3]);
  for_lanes(mask, [&](int lane) {
    std::byte* bytes = access_memory(warp, lane, instruction.space,
                                     address[lane] + static_cast<std::uint64_t>(instruction.immediate),
                                     sizeof(Value), {.writes = true, .atomic = true});
    Value old;
    std::memcpy(&old, bytes, sizeof old);
    const Value next = update(old, b[lane], c[lane]);
    std::memcpy(bytes, &next, sizeof next);
    result.set(lane, old);
  });
}

struct Choice {
  std::string_view operation;
  Type type;
  Handler handler;
};

constexpr Choice choices[] = {
    {"add", Type::u32, &atomic<std::uint32_t, add<std::uint32_t>>},
    {"add", Type::s32, &atomic<std::uint32_t, add<std::uint32_t>>},
    {"add", Type::u64, &atomic<std::uint64_t, add<std::uint64_t>>},
    {"add", Type::s64, &atomic<std::uint64_t, add<std::uint64_t>>},
    {"add", Type::f16, &atomic<Half, add<Half>>},
    {"add", Type::f16x2, &atomic<Half2, add<Half2>>},
    {"add", Type::f32, &atomic<float, add<float>>},
    {"add", Type::f64, &atomic<double, add<double>>},
    {"min", Type::u32, &atomic<std::uint32_t, minimum<std::uint32_t>>},
    {"min", Type::s32, &atomic<std::int32_t, minimum<std::int32_t>>},
    {"min", Type::u64, &atomic<std::uint64_t, minimum<std::uint64_t>>},
    {"min", Type::s64, &atomic<std::int64_t, minimum<std::int64_t>>},
    {"max", Type::u32, &atomic<std::uint32_t, maximum<std::uint32_t>>},
    {"max", Type::s32, &atomic<std::int32_t, maximum<std::int32_t>>},
    {"max", Type::u64, &atomic<std::uint64_t, maximum<std::uint64_t>>},
    {"max", Type::s64, &atomic<std::int64_t, maximum<std::int64_t>>},
    {"and", Type::b32, &atomic<std::uint32_t, both<std::uint32_t>>},
    {"and", Type::b64, &atomic<std::uint64_t, both<std::uint64_t>>},
    {"or", Type::b32, &atomic<std::uint32_t, either<std::uint32_t>>},
    {"or", Type::b64, &atomic<std::uint64_t, either<std::uint64_t>>},
    {"xor", Type::b32, &atomic<std::uint32_t, different<std::uint32_t>>},
    {"xor", Type::b64, &atomic<std::uint64_t, different<std::uint64_t>>},
    {"exch", Type::b32, &atomic<std::uint32_t, exchange<std::uint32_t>>},
    {"exch", Type::b64, &atomic<std::uint64_t, exchange<std::uint64_t>>},
    {"cas", Type::b16, &atomic<std::uint16_t, compare_and_swap<std::uint16_t>>},
    {"cas", Type::b32, &atomic<std::uint32_t, compare_and_swap<std::uint32_t>>},
    {"cas", Type::b64, &atomic<std::uint64_t, compare_and_swap<std::uint64_t>>},
    {"inc", Type::u32, &atomic<std::uint32_t, increment>},
    {"dec", Type::u32, &atomic<std::uint32_t, decrement>},
};

Handler choose(Builder& builder, Type type) {
  for (const Choice& choice : choices) {
    if (choice.type == type && builder.opcode.take(choice.operation)) return choice.handler;
  }
  builder.refuse("the emulator does not know this atomic operation");
}

template <bool has_result>
Handler build_atomic(Builder& builder) {
  take_ordering(builder.opcode);
  builder.opcode.ignore({"noftz"});
  Instruction& out = builder.out;
  out.space = take_space(builder.opcode);
  const Type type = builder.opcode.take_type();
  const Handler handler = choose(builder, type);
  builder.opcode.finish();
  const std::size_t address = has_result ? 1 : 0;
  out.at[0] = has_result ? builder.destination(0, type) : builder.names.new_register(type);
  if (const auto space = builder.address(address, 1)) out.space = *space;
  out.at[2] = builder.source(address + 1, type);
  out.at[3] = builder.operand_count() > address + 2 ? builder.source(address + 2, type) : out.at[2];
  return handler;
}

constexpr Row rows[] = {
    {"atom", any_type, build_atomic<true>},
    {"red", any_type, build_atomic<false>},
};

}  // namespace

std::span<const Row> atomic_rows() {
  return rows;
}

}  // namespace emulator
