#include <fmt/format.h>

#include <algorithm>

#include "tools/halflab/selftest/array_call.h"
#include "tools/halflab/selftest/groups.h"

namespace halflab::selftest {
namespace {

using Roundings = std::span<const fp16::NamedRounding>;
using validate::Function;

constexpr Roundings nearest_even = Roundings(roundings).first(1), others = Roundings(roundings).subspan(1);
static_assert(nearest_even.front().rounding == fp16::Rounding::nearest_even);

bool is_known(const Function& function, const fp16::Format& format, Roundings in) {
  return std::ranges::all_of(in, [&](const fp16::NamedRounding& named) {
    return function.in(format, format, named.rounding) != nullptr;
  });
}

std::uint64_t hash_of(const Function& function, const fp16::Format& format, Roundings in) {
  constexpr std::size_t count = 256;
  const std::vector<validate::Operands> operands = weighted_operands(format, count);
  Fnv1a hash;
  for (const fp16::NamedRounding& named : in) {
    const validate::Evaluate apply = function.in(format, format, named.rounding);
    for (const fp16::Attributes& attributes : borders_of(named.rounding)) {
      // Before rounding, a function of bfloat16 that is next to 2^emin may be tiny or not, which is not known here.
      if (attributes.tininess == fp16::Tininess::after_rounding)
        add_results(hash, apply, operands, attributes, format.width());
    }
  }
  return hash.value();
}

}  // namespace

std::vector<Row> format_rows() {
  std::vector<Row> rows;
  for (const fp16::NamedFormat& format : fp16::formats) {
    for (const Function& function : validate::functions()) {
      if (function.name == "cast") continue;
      const auto add = [&](Roundings in, std::string_view more) {
        if (is_known(function, format.format, in))
          rows.push_back({fmt::format("{} {}{}", format.name, function.name, more),
                          [&, in] { return hash_of(function, format.format, in); }});
      };
      add(nearest_even, "");
      add(others, " in other roundings");
    }
  }
  return rows;
}

}  // namespace halflab::selftest
