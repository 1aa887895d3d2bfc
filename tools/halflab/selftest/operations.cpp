#include "fp16/operations.h"

#include "fp16/philox.h"
#include "tools/halflab/selftest/fnv1a.h"
#include "tools/halflab/selftest/groups.h"
#include "tools/halflab/selftest/inputs.h"

namespace halflab::selftest {
namespace {

constexpr std::uint64_t samples = 0x10000;

/// Any bits; small integers; of 32 and 64 bits also the float or double at a half, or halfway to the next one.
std::uint64_t wide_operand(int bits, const fp16::Philox::Block& words) {
  const std::uint64_t drawn = words[0] | std::uint64_t{words[1]} << 32;
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits);
  switch (words[2] % 4) {
    case 0:
      return drawn & mask;
    case 1:
      return (drawn & mask) >> words[3] % static_cast<std::uint32_t>(bits);
    default:
      break;
  }
  const auto half = static_cast<std::uint16_t>(drawn);
  const std::uint64_t step = words[3] % 3;  // below, at and above the middle
  if (bits == 32) return fp16::convert<fp16::binary32, fp16::binary16>(half).bits + 0x0fff + step;
  return fp16::convert<fp16::binary64, fp16::binary16>(half).bits + 0x1ffffffffff + step;
}

/// Any half; one of the two or three in a row is near in magnitude to the first.
std::uint64_t half_operand(std::size_t k, std::uint64_t first, const fp16::Philox::Block& words) {
  const bool is_near = k > 0 && words[2] % 4 == 0;
  return (is_near ? first + (words[0] & 0x800f) : words[0]) & 0xffff;
}

std::uint64_t hash_of(const fp16::Operation& operation) {
  Fnv1a hash;
  for (std::uint64_t i = 0; i < samples; ++i) {
    fp16::OperandCodes codes{i};
    const bool has_all = operation.arity == 1 && operation.operand_bits[0] <= 16;
    for (std::size_t k = 0; !has_all && k < static_cast<std::size_t>(operation.arity); ++k) {
      const fp16::Philox::Block words = fp16::Philox{.key = 46, .stream = k}.block(i);
      const int bits = operation.operand_bits[k];
      codes[k] = bits > 16 ? wide_operand(bits, words) : half_operand(k, codes[0], words);
      codes[k] &= ~std::uint64_t{0} >> (64 - bits);
    }
    hash.add(operation.apply(codes), operation.result_bits);
  }
  return hash.value();
}

}  // namespace

std::vector<Row> operation_rows() {
  std::vector<Row> rows;
  for (const fp16::Operation& operation : fp16::operations())
    rows.push_back({operation.name, [&] { return hash_of(operation); }});
  return rows;
}

}  // namespace halflab::selftest
