#include "tools/halflab/validate/operands.h"

#include <array>
#include <bit>

#include "fp16/bits.h"
#include "fp16/codec.h"
#include "fp16/philox.h"

namespace halflab::validate {
namespace {

constexpr int most_complete_bits = 32;
constexpr std::int64_t default_weighted = 1 << 20;

std::uint64_t mask_of(int bits) {
  return bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

/// The number of a narrower format with that place, or the middle between it and the next; beyond the last, where an
/// infinity would lie were the exponents to go on.
template <const fp16::Format& F>
double narrower(std::uint64_t random) {
  const std::uint64_t largest = F.max_finite_code(), all = random >> 8;
  const std::uint64_t code = random % 8 == 0   ? largest - all % 4
                             : random % 8 == 1 ? (std::uint64_t{1} << F.trailing_bits()) - 2 + all % 4
                             : random % 8 == 2 ? all % (std::uint64_t{1} << F.trailing_bits())
                                               : all % (largest + 1);
  const auto value = [](std::uint64_t of) -> double {
    return fp16::decode<F>(static_cast<fp16::Bits<F>>(of));
  };
  const double low = value(code), high = code < largest ? value(code + 1) : 2 * low - value(code - 1);
  return (random >> 3 & 3) == 0 ? low : (low + high) / 2;
}

}  // namespace

OperandList::OperandList(const Function& function, const fp16::Format& format,
                         std::optional<std::int64_t> weighted, std::uint64_t seed)
    : format_(format),
      arity_(function.arity),
      is_complete_(!weighted && function.arity * format.width() <= most_complete_bits),
      size_(is_complete_ ? std::uint64_t{1} << function.arity * format.width()
                         : static_cast<std::uint64_t>(weighted.value_or(default_weighted))),
      seed_(seed),
      multiply_(find_function("multiply").in(format, format, fp16::Rounding::nearest_even)),
      from_binary64_(function.name == "cast" && format.width() > 16
                         ? function.in(fp16::binary64, format, fp16::Rounding::nearest_even)
                         : nullptr) {}

Operands OperandList::operator[](std::uint64_t index) const {
  if (!is_complete_) return weighted(index);
  Operands codes{};
  // The last operand runs fastest.
  for (std::size_t i = static_cast<std::size_t>(arity_); i-- > 0; index >>= format_.width())
    codes[i] = index & mask_of(format_.width());
  return codes;
}

Operands OperandList::weighted(std::uint64_t index) const {
  Operands codes{weighted_code(index, 0, 0)};
  if (arity_ > 1) codes[1] = weighted_code(index, 1, codes[0]);
  if (arity_ > 2) codes[2] = weighted_code(index, 2, multiply_ ? multiply_(codes, {}) : codes[0]);
  return codes;
}

std::uint64_t OperandList::beside_narrower(std::uint64_t random) const {
  const std::uint64_t where = random >> 8;
  const double value = random % 8 < 4    ? narrower<fp16::binary16>(where)
                       : random % 8 < 6  ? narrower<fp16::bfloat16>(where)
                       : random % 8 == 6 ? narrower<fp16::e4m3>(where)
                                         : narrower<fp16::e5m2>(where);
  return from_binary64_({std::bit_cast<std::uint64_t>(value)}, {}) + (random >> 3 & 31) % 5 - 2;
}

std::uint64_t OperandList::weighted_code(std::uint64_t index, std::uint64_t operand,
                                         std::uint64_t near) const {
  const fp16::Philox::Block words = fp16::Philox{.key = seed_, .stream = operand}.block(index);
  const int trailing = format_.trailing_bits(), width = format_.width();
  const std::uint64_t random = std::uint64_t{words[0]} << 32 | words[1];
  const std::uint64_t sign = format_.is_signed() ? std::uint64_t{words[2] & 1} << (width - 1) : 0;
  const std::uint64_t all = mask_of(width), fractions = mask_of(trailing), one = 1;
  const std::uint64_t binade = (random >> 8 & mask_of(format_.exponent_bits)) << trailing;
  const std::uint64_t step = random % 5 - 2;
  const std::array borders{std::uint64_t{0}, one << trailing, format_.max_finite_code() + 1,
                           mask_of(width - format_.is_signed())};
  const auto signed_code = [&](std::uint64_t magnitude) {
    return sign | (magnitude & mask_of(width - format_.is_signed()));
  };
  const bool has_near = operand > 0;
  switch (words[3] % 8) {
    case 0:
    case 1:
      return signed_code(borders[words[2] >> 1 & 3] + step);
    case 2:  // beside a power of two
      return signed_code(binade + step);
    case 3:  // beside the middle between two of them
      return signed_code(binade + (one << trailing >> 1) + step);
    case 4:  // near in magnitude: cancellation
      return has_near ? signed_code(near + step) : random & all;
    case 5:  // near in exponent
      return has_near ? signed_code((near & ~fractions) + ((random % 25 - 12) << trailing) +
                                    (random >> 32 & fractions))
                      : random & all;
    case 6:
    case 7:
      return from_binary64_ ? signed_code(beside_narrower(random)) : random & all;
    default:
      return random & all;
  }
}

}  // namespace halflab::validate
