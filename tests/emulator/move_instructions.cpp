/// mov, with packing and unpacking, and cvta.

#include <chrono>

#include "tests/emulator/builder.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/registers.h"
#include "tests/emulator/select.h"

namespace emulator {

namespace {

template <typename Value>
struct Copy {
  static Value apply(Value a) { return a; }
};
bool copy_predicate(bool a) {
  return a;
}

/// at[0] = the elements, the first in the low bits. immediate: bytes of an element.
void pack(Warp& warp, const Instruction& instruction, Mask mask) {
  const auto element = static_cast<std::uint32_t>(instruction.immediate);
  const auto count = static_cast<std::uint32_t>(instruction.vectors.size());
  const RegisterView whole(warp, instruction.at[0], element * count);
  for_lanes(mask, [&](int lane) {
    std::uint64_t value = 0;
    for (std::uint32_t i = 0; i < count; ++i)
      value |= RegisterView(warp, instruction.vectors[i], element).get(lane) << 8 * element * i;
    whole.set(lane, value);
  });
}

void unpack(Warp& warp, const Instruction& instruction, Mask mask) {
  const auto element = static_cast<std::uint32_t>(instruction.immediate);
  const auto count = static_cast<std::uint32_t>(instruction.vectors.size());
  const RegisterView whole(warp, instruction.at[0], element * count);
  for_lanes(mask, [&](int lane) {
    const std::uint64_t value = whole.get(lane);
    for (std::uint32_t i = 0; i < count; ++i)
      RegisterView(warp, instruction.vectors[i], element).set(lane, value >> 8 * element * i);
  });
}

/// Nanoseconds of the host stand for clocks. immediate: how far to shift them.
void read_clock(Warp& warp, const Instruction& instruction, Mask mask) {
  const auto now = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                  std::chrono::steady_clock::now().time_since_epoch())
                                                  .count());
  const RegisterView result(warp, instruction.at[0], instruction.vectors[0]);
  for_lanes(mask, [&](int lane) { result.set(lane, now >> instruction.immediate); });
}

bool is_clock(std::string_view name) {
  return name.starts_with("%clock") || name.starts_with("%globaltimer");
}

Type type_of_bytes(std::size_t bytes) {
  return bytes == 1 ? Type::b8 : bytes == 2 ? Type::b16 : bytes == 4 ? Type::b32 : Type::b64;
}

Handler build_mov(Builder& builder) {
  const Type type = builder.opcode.take_type();
  builder.opcode.finish();
  Instruction& out = builder.out;
  for (const std::size_t index : {0, 1}) {
    if (builder.operand(index).kind != Operand::Kind::vector) continue;
    const std::size_t count = builder.operand(index).elements.size();
    const Type element = type_of_bytes(static_cast<std::size_t>(bytes_of(type)) / count);
    out.immediate = bytes_of(element);
    out.vectors = builder.vector(index, element, index == 0, count);
    out.at[0] = index == 0 ? builder.source(1, type) : builder.destination(0, type);
    return index == 0 ? &unpack : &pack;
  }
  if (is_clock(builder.operand(1).name)) {
    out.at[0] = builder.destination(0, type);
    out.vectors = {static_cast<std::uint32_t>(bytes_of(type))};
    out.immediate = builder.operand(1).name.ends_with("_hi") ? 32 : 0;
    return &read_clock;
  }
  builder.operands({type, type});
  return type == Type::pred ? map<&copy_predicate> : by_size<Copy>(type);
}

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  return a + b;
}

/// Between generic addresses and those of a space, which differ by the beginning of its window.
Handler build_cvta(Builder& builder) {
  const bool to = builder.opcode.take("to");
  std::uint64_t window = 0;
  if (builder.opcode.take("shared") || builder.opcode.take("shared::cta"))
    window = shared_window;
  else if (builder.opcode.take("local"))
    window = local_window;
  else if (builder.opcode.take("param") || builder.opcode.take("param::entry"))
    window = parameter_window;
  else
    builder.opcode.ignore({"global", "const"});
  builder.opcode.take_type();
  builder.operands({Type::b64, Type::b64});
  builder.out.at[2] = builder.names.constant(8, to ? 0 - window : window);
  return map<&sum>;
}

constexpr Row rows[] = {
    {"mov", any_type, build_mov},
    {"cvta", any_type, build_cvta},
};

}  // namespace

std::span<const Row> move_rows() {
  return rows;
}

}  // namespace emulator
