#include "fp16/text.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "tools/halflab/selftest/array_call.h"
#include "tools/halflab/selftest/groups.h"

namespace halflab::selftest {
namespace {

using fp16::Format;

template <const Format& F>
std::uint64_t hash_of_written() {
  constexpr std::size_t count = 512;
  Fnv1a hash;
  for (const fp16::Bits<F> code : OperandArrays<F>(count).a) {
    for (const std::string& text : {fp16::to_shortest<F>(code), fp16::to_exact<F>(code),
                                    fp16::to_hex<F>(code), fp16::to_fields<F>(code)})
      hash.add(text + '\n');
  }
  return hash.value();
}

/// Decimals of few digits, the exact ones of binary64 and hexadecimal ones, most of which lie between two numbers.
std::vector<std::string> numerals() {
  constexpr std::size_t count = 256;
  std::vector<std::string> texts{"inf", "-infinity", "nan", "snan", "0x1p-1075", "1e400", "-1e-400", "0.1"};
  const fp16::Philox random{.key = 50};
  const std::vector<double> moderate = moderate_numbers(count, 6);
  for (std::size_t i = 0; i < count; ++i) {
    const auto [digits, exponent, sign, ignored] = random.block(i);
    texts.push_back(fmt::format("{}{}e{}", sign % 2 == 0 ? "" : "-", digits % 10'000,
                                static_cast<int>(exponent % 24) - 14));
    texts.push_back(fp16::to_exact<fp16::binary64>(std::bit_cast<std::uint64_t>(moderate[i])));
    texts.push_back(fp16::to_hex<fp16::binary64>(std::bit_cast<std::uint64_t>(moderate[i])));
  }
  return texts;
}

template <const Format& F>
std::uint64_t hash_of_read() {
  const std::vector<std::string> texts = numerals();
  Fnv1a hash;
  for (const fp16::NamedRounding& named : roundings) {
    for (const std::string& text : texts) {
      const auto result =
          fp16::parse<F>(text, {.rounding = named.rounding, .random_bits = draws[text.size()]});
      hash.add(result.bits, F.width());
      hash.add(result.flags);
    }
  }
  return hash.value();
}

}  // namespace

std::vector<Row> text_rows() {
  std::vector<Row> rows;
  fp16::for_each_format([&]<const Format & F>() {
    rows.push_back({fmt::format("{} written", fp16::name_of(F)), hash_of_written<F>});
    rows.push_back({fmt::format("{} read", fp16::name_of(F)), hash_of_read<F>});
  });
  return rows;
}

}  // namespace halflab::selftest
