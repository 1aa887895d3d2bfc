#include "experiments/validation/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "experiments/validation/double_oracle.h"
#include "fp16/bits.h"
#include "fp16/codec.h"
#include "fp16/formats.h"

namespace experiments::validation {
namespace {

void append(std::string& cell, const std::string& text) {
  if (!cell.empty()) cell += ' ';
  cell += text;
}

}  // namespace

bool is_nan(NumberType type, std::uint64_t code) {
  if (type.kind != NumberKind::floating_point) return false;
  if (type.bits == 16) return fp16::is_nan<fp16::binary16>(static_cast<std::uint16_t>(code));
  if (type.bits == 32) return fp16::is_nan<fp16::binary32>(static_cast<std::uint32_t>(code));
  return fp16::is_nan<fp16::binary64>(code);
}

std::string bits_text(NumberType type, std::uint64_t code) {
  return fmt::format("0x{:0{}x}", code, std::max(1, type.bits / 4));
}

std::string value_text(NumberType type, std::uint64_t code) {
  if (type.kind == NumberKind::unsigned_integer) return fmt::format("{}", code);
  if (type.kind == NumberKind::signed_integer) {
    const int unused = 64 - type.bits;
    return fmt::format("{}", static_cast<std::int64_t>(code << unused) >> unused);
  }
  const auto number_text = [](auto number) {
    return std::isnan(number) ? "nan" : fmt::format("{}", number);  // a NaN's sign is in its bits
  };
  if (type.kind == NumberKind::alternative_half)
    return number_text(fp16::decode<alternative_half>(static_cast<std::uint16_t>(code)));
  if (type.kind == NumberKind::bfloat16) {
    std::string text;
    for (int place = 0; place < type.bits; place += 16)
      append(text, number_text(fp16::decode<fp16::bfloat16>(static_cast<std::uint16_t>(code >> place))));
    return text;
  }
  if (type.bits == 64) return number_text(std::bit_cast<double>(code));
  if (type.bits == 32) return number_text(std::bit_cast<float>(static_cast<std::uint32_t>(code)));
  return number_text(double_oracle::decode(static_cast<std::uint16_t>(code)));
}

std::string long_number(std::uint64_t number) {
  std::string text = fmt::format("{}", number);
  for (auto end = static_cast<std::ptrdiff_t>(text.size()) - 3; end > 0; end -= 3)
    text.insert(static_cast<std::size_t>(end), 1, ',');
  return text;
}

void append_lane(Example& example, const ExampleTypes& types, const ExampleLane& lane) {
  const auto put = [&](std::size_t cell, NumberType type, std::uint64_t code) {
    append(example.bits[cell], bits_text(type, code));
    append(example.values[cell], value_text(type, code));
  };
  const std::array operands{lane.operands.a, lane.operands.b, lane.operands.c};
  for (std::size_t i = 0; i < static_cast<std::size_t>(types.operand_count); ++i)
    put(i, types.operand, operands[i]);
  if (lane.result) put(3, types.result, *lane.result);
  if (lane.expected) put(4, types.result, *lane.expected);
}

Example repetition_example(std::uint64_t digest, std::uint64_t before) {
  Example example{.kind = "repetition", .bits = {}, .values = {}};
  example.bits[3] = fmt::format("digest 0x{:016x}", digest);
  example.bits[4] = fmt::format("digest 0x{:016x}", before);
  return example;
}

}  // namespace experiments::validation
