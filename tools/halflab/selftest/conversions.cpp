#include <fmt/format.h>

#include <string>

#include "fp16/block_arrays.h"
#include "fp16/packed.h"
#include "tools/halflab/selftest/array_call.h"
#include "tools/halflab/selftest/groups.h"

namespace halflab::selftest {
namespace {

using fp16::Bits;
using fp16::Format;

template <const Format& F>
std::uint64_t from_floats(fp16::Rounding rounding) {
  const std::vector<float> floats = hard_floats(F);
  Fnv1a hash;
  for (const fp16::Attributes& attributes : borders_of(rounding))
    add_calls<Bits<F>>(hash, floats.size(), attributes,
                       [&](std::span<Bits<F>> out, const fp16::ArrayOptions& options) {
                         fp16::encode<F>(std::span<const float>(floats), out, attributes, options);
                       });
  return hash.value();
}

/// All codes of up to 16 bits, and as many that are evenly spread of wider ones.
template <const Format& F>
std::vector<Bits<F>> spread_codes() {
  constexpr int most = 16;
  std::vector<Bits<F>> codes;
  for (std::uint64_t i = 0; i < std::uint64_t{1} << std::min(most, F.width()); ++i) {
    std::uint64_t code = i;
    if (F.width() > most) code = i << (F.width() - most) | i;
    codes.push_back(static_cast<Bits<F>>(code));
  }
  return codes;
}

template <const Format& F>
std::uint64_t to_floats() {
  const std::vector<Bits<F>> codes = spread_codes<F>();
  std::vector<float> values(codes.size());
  fp16::decode<F>(std::span<const Bits<F>>(codes), std::span(values));
  Fnv1a hash;
  hash.add(std::span<const float>(values));
  return hash.value();
}

template <const Format& F>
std::uint64_t packed() {
  const std::vector<float> floats = hard_floats(F);
  std::vector<std::uint8_t> bytes(fp16::packed_bytes(floats.size(), F.width()));
  std::vector<float> values(floats.size());
  Fnv1a hash;
  fp16::encode_packed<F>(floats, bytes);
  hash.add(std::span<const std::uint8_t>(bytes));
  fp16::decode_packed<F>(bytes, values);
  hash.add(std::span<const float>(values));
  return hash.value();
}

std::uint64_t scaled(const Format& format) {
  Fnv1a hash;
  for (const float scale : {1.0f, 3.0f, 0x1p-7f}) {
    std::vector<float> values = hard_floats(format);
    fp16::round_scaled(format, values, scale);
    hash.add(std::span<const float>(values));
  }
  return hash.value();
}

/// A conversion of one number.
std::uint64_t cast(const Format& to, const Format& from) {
  constexpr std::size_t count = 512;
  const std::vector<validate::Operands> operands = weighted_operands(from, count);
  Fnv1a hash;
  for (const fp16::NamedRounding& named : roundings) {
    const validate::Evaluate convert = validate::find_function("cast").in(from, to, named.rounding);
    for (const fp16::Attributes& attributes : borders_of(named.rounding))
      add_results(hash, convert, operands, attributes, to.width());
  }
  return hash.value();
}

template <const Format& F>
void add_rows(std::vector<Row>& rows) {
  const std::string name(fp16::name_of(F));
  for (const fp16::NamedRounding& rounding : fp16::named_roundings)
    rows.push_back({fmt::format("{} from floats {}", name, rounding.name),
                    [&] { return from_floats<F>(rounding.rounding); }});
  if constexpr (contains(fp16::binary32, F)) rows.push_back({name + " to floats", to_floats<F>});
  if constexpr (fp16::is_packable(F)) rows.push_back({name + " packed", packed<F>});
  if constexpr (F.has_arithmetic() && F.width() <= 8)
    rows.push_back({name + " scaled", [] { return scaled(F); }});
}

}  // namespace

std::vector<Row> conversion_rows() {
  std::vector<Row> rows;
  fp16::for_each_format([&]<const Format & F>() { add_rows<F>(rows); });
  for (const fp16::NamedFormat& from : fp16::formats) {
    for (const fp16::NamedFormat& to : fp16::formats)
      rows.push_back(
          {fmt::format("{} to {}", from.name, to.name), [&] { return cast(to.format, from.format); }});
  }
  return rows;
}

}  // namespace halflab::selftest
