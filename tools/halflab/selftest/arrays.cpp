#include <fmt/format.h>

#include "tools/halflab/selftest/array_call.h"
#include "tools/halflab/selftest/groups.h"

namespace halflab::selftest {
namespace {

using fp16::Bits;
using fp16::Format;

template <const Format& F>
std::uint64_t hash_of(const fp16::ArrayOperation<F>& operation, fp16::Rounding rounding) {
  constexpr std::size_t count = 4'099;
  const OperandArrays<F> operands(count);
  Fnv1a hash;
  for (const fp16::Attributes& attributes : borders_of(rounding))
    add_calls<Bits<F>>(hash, count, attributes,
                       [&](std::span<Bits<F>> out, const fp16::ArrayOptions& options) {
                         operation.apply(operands, out, attributes, options);
                       });
  return hash.value();
}

template <const Format& F>
void add_rows(std::vector<Row>& rows) {
  for (const fp16::ArrayOperation<F>& operation : fp16::array_operations<F>) {
    for (const fp16::NamedRounding& rounding : fp16::named_roundings)
      rows.push_back({fmt::format("{} {} {}", fp16::name_of(F), operation.name, rounding.name),
                      [&] { return hash_of<F>(operation, rounding.rounding); }});
  }
}

}  // namespace

std::vector<Row> array_rows() {
  std::vector<Row> rows;
  fp16::for_each_format([&]<const Format & F>() {
    if constexpr (F.has_arithmetic()) add_rows<F>(rows);
  });
  return rows;
}

}  // namespace halflab::selftest
