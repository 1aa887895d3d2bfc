#include "tools/halflab/selftest/inputs.h"

#include <bit>
#include <cmath>

#include "fp16/codec.h"
#include "tools/halflab/formats.h"

namespace halflab::selftest {
namespace {

constexpr std::uint64_t key = 22;

}  // namespace

std::vector<validate::Operands> weighted_operands(const fp16::Format& format, std::size_t count) {
  const validate::OperandList list(validate::find_function("fma"), format, {}, key);
  std::vector<validate::Operands> operands;
  for (std::size_t i = 0; i < count; ++i) operands.push_back(list.weighted(i));
  return operands;
}

std::vector<float> hard_floats(const fp16::Format& format) {
  constexpr std::uint64_t stride = 262'147;
  std::vector<float> floats;
  for (std::uint64_t bits = 0; bits < 0x100000000; bits += stride)
    floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  if (!contains(fp16::binary32, format) || format.trailing_bits() >= fp16::binary32.trailing_bits())
    return floats;
  const std::uint32_t half_ulp = 1u << (fp16::binary32.trailing_bits() - format.trailing_bits() - 1);
  constexpr std::size_t numbers = 4096;
  for (const validate::Operands& codes : weighted_operands(format, numbers)) {
    const double value = with_format(format, [&]<const fp16::Format & F>() -> double {
      return fp16::decode<F>(static_cast<fp16::Bits<F>>(codes[0]));
    });
    const auto bits = std::bit_cast<std::uint32_t>(fp16::encode<fp16::binary32>(value).bits);
    for (const std::uint32_t beyond : {half_ulp - 1, half_ulp, half_ulp + 1})
      floats.push_back(std::bit_cast<float>(bits + beyond));
  }
  return floats;
}

std::vector<std::uint32_t> drawn(std::size_t count) {
  std::vector<std::uint32_t> bits(count);
  for (std::size_t i = 0; i < count; ++i) bits[i] = draws[i];
  return bits;
}

std::vector<double> moderate_numbers(std::size_t count, std::uint64_t stream) {
  const fp16::Philox random{.key = key, .stream = stream};
  std::vector<double> numbers;
  for (std::size_t i = 0; i < count; ++i) {
    const fp16::Philox::Block words = random.block(i);
    const double significand = 1 + std::ldexp(words[0], -32);
    const int exponent = static_cast<int>(words[1] % 7) - 3;
    numbers.push_back(std::ldexp(words[2] % 2 == 0 ? significand : -significand, exponent));
  }
  return numbers;
}

}  // namespace halflab::selftest
