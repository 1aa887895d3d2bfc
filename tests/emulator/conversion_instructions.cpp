/// PTX ISA, "Data Movement and Conversion Instructions: cvt".

#include <array>
#include <cmath>
#include <limits>

#include "tests/emulator/builder.h"
#include "tests/emulator/registers.h"
#include "tests/emulator/select.h"

namespace emulator {

namespace {

template <typename Value>
inline constexpr bool is_float = std::is_floating_point_v<Value> || std::is_same_v<Value, Half>;

double to_integral(double a, Rounding rounding) {
  switch (rounding) {
    case Rounding::toward_zero:
      return std::trunc(a);
    case Rounding::toward_negative:
      return std::floor(a);
    case Rounding::toward_positive:
      return std::ceil(a);
    default:
      return std::nearbyint(a);
  }
}

/// Clamped to what the type holds. A NaN becomes zero, or the least signed value if either side has 64 bits, as
/// the documentation of the CUDA conversion functions has it.
template <typename Integer>
Integer integer_from(double a, bool from_binary64, Rounding rounding) {
  using Limits = std::numeric_limits<Integer>;
  if (is_nan(a)) {
    if (sizeof(Integer) < 8 && !(from_binary64 && sizeof(Integer) == 4)) return 0;
    return static_cast<Integer>(std::uint64_t{1} << (8 * sizeof(Integer) - 1));
  }
  const double integral = to_integral(a, rounding);
  if (integral < static_cast<double>(Limits::min())) return Limits::min();
  return integral >= std::ldexp(1.0, Limits::digits) ? Limits::max() : static_cast<Integer>(integral);
}

template <typename Float>
constexpr BinaryFormat format_of() {
  return sizeof(Float) == 2 ? format16 : sizeof(Float) == 4 ? format32 : format64;
}

template <typename Float, typename Integer>
Float float_from(Integer a, Rounding rounding) {
  const bool negative = a < 0;
  const std::uint64_t magnitude = negative ? 0 - as_wide(a) : as_wide(a);
  using Code = UnsignedOf<sizeof(Float)>;
  const auto code = static_cast<Code>(round_magnitude(format_of<Float>(), negative, magnitude, 0, rounding));
  return std::bit_cast<Float>(static_cast<Code>(code | Code{negative} << (8 * sizeof(Float) - 1)));
}

template <typename To, typename From>
To converted(const Modifiers& modifiers, From a) {
  if constexpr (is_float<From> && is_float<To>) {
    double value = to_double(flush(modifiers, a));
    if (modifiers.to_integral) value = to_integral(value, modifiers.rounding);
    return finish(modifiers, from_double<To>(value, modifiers.rounding));
  } else if constexpr (is_float<From>) {
    return integer_from<To>(to_double(flush(modifiers, a)), std::is_same_v<From, double>, modifiers.rounding);
  } else if constexpr (is_float<To>) {
    return finish(modifiers, float_from<To>(a, modifiers.rounding));
  } else {
    if (!modifiers.saturate) return static_cast<To>(a);
    const __int128 low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
    return static_cast<To>(std::clamp<__int128>(a, low, high));
  }
}

/// Registers may be wider than the types: the result is extended by its own sign. vectors: their bytes.
template <typename To, typename From>
void convert(Warp& warp, const Instruction& instruction, Mask mask) {
  const RegisterView result(warp, instruction.at[0], instruction.vectors[0]);
  const RegisterView source(warp, instruction.at[1], instruction.vectors[1]);
  for_lanes(mask, [&](int lane) {
    const From a = std::bit_cast<From>(static_cast<UnsignedOf<sizeof(From)>>(source.get(lane)));
    const To value = converted<To>(instruction.modifiers, a);
    if constexpr (std::is_signed_v<To> && std::is_integral_v<To>)
      result.set(lane, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
    else
      result.set(lane, std::bit_cast<UnsignedOf<sizeof(To)>>(value));
  });
}

template <typename To>
Handler from(Type type) {
  switch (type) {
    case Type::u8:
      return &convert<To, std::uint8_t>;
    case Type::s8:
      return &convert<To, std::int8_t>;
    case Type::u16:
      return &convert<To, std::uint16_t>;
    case Type::s16:
      return &convert<To, std::int16_t>;
    case Type::u32:
      return &convert<To, std::uint32_t>;
    case Type::s32:
      return &convert<To, std::int32_t>;
    case Type::u64:
      return &convert<To, std::uint64_t>;
    case Type::s64:
      return &convert<To, std::int64_t>;
    case Type::f16:
      return &convert<To, Half>;
    case Type::f32:
      return &convert<To, float>;
    case Type::f64:
      return &convert<To, double>;
    default:
      throw Unsupported("the emulator does not know a conversion from this type");
  }
}

Handler conversion(Type to, Type type) {
  switch (to) {
    case Type::u8:
      return from<std::uint8_t>(type);
    case Type::s8:
      return from<std::int8_t>(type);
    case Type::u16:
      return from<std::uint16_t>(type);
    case Type::s16:
      return from<std::int16_t>(type);
    case Type::u32:
      return from<std::uint32_t>(type);
    case Type::s32:
      return from<std::int32_t>(type);
    case Type::u64:
      return from<std::uint64_t>(type);
    case Type::s64:
      return from<std::int64_t>(type);
    case Type::f16:
      return from<Half>(type);
    case Type::f32:
      return from<float>(type);
    case Type::f64:
      return from<double>(type);
    default:
      throw Unsupported("the emulator does not know a conversion to this type");
  }
}

/// cvt.f16x2.f32 d, a, b: b is in the low bits.
Half2 convert_pair(const Modifiers& modifiers, float a, float b) {
  return {converted<Half>(modifiers, b).code, converted<Half>(modifiers, a).code};
}

Handler build_cvt(Builder& builder) {
  constexpr std::array<std::string_view, 4> integral{"rni", "rzi", "rmi", "rpi"};
  Instruction& out = builder.out;
  if (const auto found = builder.opcode.take_one_of(integral)) {
    out.modifiers.rounding = static_cast<Rounding>(*found);
    out.modifiers.to_integral = true;
  }
  builder.take_rounding();
  builder.take_flags();
  const Type to = builder.opcode.take_type(), type = builder.opcode.take_type();
  if (to == Type::f16x2) {
    builder.operands({Type::f16x2, type, type});
    return map<&convert_pair>;
  }
  builder.opcode.finish();
  const WideRegister result = wide_destination(builder, builder.operand(0), to);
  const WideRegister source = wide_source(builder, builder.operand(1), type);
  out.at[0] = result.slot;
  out.at[1] = source.slot;
  out.vectors = {result.bytes, source.bytes};
  return conversion(to, type);
}

constexpr Row rows[] = {{"cvt", any_type, build_cvt}};

}  // namespace

std::span<const Row> conversion_rows() {
  return rows;
}

}  // namespace emulator
