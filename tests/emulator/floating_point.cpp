#include "tests/emulator/floating_point.h"

#include <cfenv>

namespace emulator {

namespace {

bool rounds_up(Rounding rounding, bool negative, bool odd, bool half, bool rest) {
  switch (rounding) {
    case Rounding::nearest_even:
      return half && (rest || odd);
    case Rounding::toward_zero:
      return false;
    case Rounding::toward_negative:
      return negative && (half || rest);
    case Rounding::toward_positive:
      return !negative && (half || rest);
  }
  return false;
}

std::uint64_t overflow_code(const BinaryFormat& format, bool negative, Rounding rounding) {
  const bool to_infinity = rounding == Rounding::nearest_even ||
                           (rounding == Rounding::toward_negative && negative) ||
                           (rounding == Rounding::toward_positive && !negative);
  return format.infinity() - (to_infinity ? 0 : 1);
}

/// The code in `format` of a finite binary64 number.
std::uint64_t narrow(const BinaryFormat& format, double a, Rounding rounding) {
  const auto code = std::bit_cast<std::uint64_t>(a);
  const bool negative = code >> 63;
  const int biased = static_cast<int>(code >> 52 & 0x7ff);
  const std::uint64_t trailing = code & ((std::uint64_t{1} << 52) - 1);
  const std::uint64_t significand = biased == 0 ? trailing : trailing | std::uint64_t{1} << 52;
  return round_magnitude(format, negative, significand, (biased == 0 ? 1 : biased) - 1075, rounding);
}

int host_direction(Rounding rounding) {
  switch (rounding) {
    case Rounding::toward_zero:
      return FE_TOWARDZERO;
    case Rounding::toward_negative:
      return FE_DOWNWARD;
    case Rounding::toward_positive:
      return FE_UPWARD;
    default:
      return FE_TONEAREST;
  }
}

template <typename Float>
Float clamp(const Modifiers& modifiers, Float a) {
  if (modifiers.saturate) return a > 0 ? (a > 1 ? Float{1} : a) : Float{0};
  return a;
}

}  // namespace

std::uint64_t round_magnitude(const BinaryFormat& format, bool negative, std::uint64_t significand,
                              int exponent, Rounding rounding) {
  if (significand == 0) return 0;
  const int leading = exponent + 63 - std::countl_zero(significand);
  const int quantum = std::max(leading, format.emin()) - (format.precision - 1);
  const int shift = quantum - exponent;
  std::uint64_t kept = 0;
  bool half = false, rest = false;
  if (shift <= 0) {
    kept = significand << -shift;
  } else if (shift <= 64) {
    kept = shift == 64 ? 0 : significand >> shift;
    half = significand >> (shift - 1) & 1;
    rest = (significand & ((std::uint64_t{1} << (shift - 1)) - 1)) != 0;
  } else {
    rest = true;
  }
  if (rounds_up(rounding, negative, kept & 1, half, rest)) ++kept;
  // A kept significand without its leading bit is subnormal; a carry goes into the exponent by itself.
  const auto steps = static_cast<std::uint64_t>(quantum - (format.emin() - (format.precision - 1)));
  const std::uint64_t code = (steps << (format.precision - 1)) + kept;
  return code >= format.infinity() ? overflow_code(format, negative, rounding) : code;
}

Half half_from_double(double a, Rounding rounding) {
  if (is_nan(a)) return canonical_nan16;
  const std::uint16_t sign = std::signbit(a) ? 0x8000 : 0;
  if (std::isinf(a)) return {static_cast<std::uint16_t>(sign | 0x7c00)};
  return {static_cast<std::uint16_t>(sign | narrow(format16, a, rounding))};
}

float float_from_double(double a, Rounding rounding) {
  if (is_nan(a)) return canonical_nan32;
  if (rounding == Rounding::nearest_even || std::isinf(a)) return static_cast<float>(a);
  const auto magnitude = static_cast<std::uint32_t>(narrow(format32, a, rounding));
  return std::bit_cast<float>(magnitude | (std::signbit(a) ? 0x80000000u : 0u));
}

Half finish(const Modifiers& modifiers, Half a) {
  a = flush(modifiers, a);
  if (modifiers.saturate) return half_from_double(clamp(modifiers, to_double(a)), Rounding::nearest_even);
  if (is_nan(a)) return canonical_nan16;
  if (modifiers.relu && (a.code & 0x8000)) return {0};
  return a;
}

float finish(const Modifiers& modifiers, float a) {
  a = clamp(modifiers, flush(modifiers, a));
  return is_nan(a) ? canonical_nan32 : a;
}

double finish(const Modifiers& modifiers, double a) {
  return clamp(modifiers, a);
}

template <typename Float>
Float host_operation(HostOperation operation, Rounding rounding, Float a, Float b, Float c) {
  volatile Float x = a, y = b, z = c, result = 0;  // the compiler knows nothing of the direction
  if (rounding != Rounding::nearest_even) std::fesetround(host_direction(rounding));
  switch (operation) {
    case HostOperation::add:
      result = x + y;
      break;
    case HostOperation::subtract:
      result = x - y;
      break;
    case HostOperation::multiply:
      result = x * y;
      break;
    case HostOperation::fma:
      result = std::fma(x, y, z);
      break;
    case HostOperation::divide:
      result = x / y;
      break;
    case HostOperation::square_root:
      result = std::sqrt(x);
      break;
  }
  if (rounding != Rounding::nearest_even) std::fesetround(FE_TONEAREST);
  return result;
}

template float host_operation(HostOperation, Rounding, float, float, float);
template double host_operation(HostOperation, Rounding, double, double, double);

}  // namespace emulator
