#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "fp16/dot.h"
#include "fp16/exact_sums.h"
#include "fp16/sum.h"
#include "tools/halflab/selftest/array_call.h"
#include "tools/halflab/selftest/groups.h"

namespace halflab::selftest {
namespace {

using fp16::Bits;
using fp16::Format;

constexpr std::array<std::size_t, 7> lengths{1, 2, 7, 32, 33, 257, 1000};

/// Numbers that add up; and a few of any class.
template <const Format& F>
struct Terms {
  std::vector<Bits<F>> moderate;
  OperandArrays<F> any{512};

  explicit Terms(std::uint64_t stream) {
    for (const double number : moderate_numbers(lengths.back(), stream))
      moderate.push_back(fp16::encode<F>(number).bits);
  }
};

/// add(first, second) adds up so many terms of two arrays, and the result is hashed.
template <const Format& F, class Add>
std::uint64_t hash_of(Add add) {
  const Terms<F> a(2), b(3);
  Fnv1a hash;
  const auto take = [&](std::span<const Bits<F>> x, std::span<const Bits<F>> y, fp16::Rounding rounding) {
    const fp16::Result<F> sum = add(x, y, fp16::Attributes{.rounding = rounding});
    hash.add(sum.bits, F.width());
    hash.add(sum.flags);
  };
  // Stochastic rounding would use the same random bits in each step, which nobody does.
  for (const fp16::NamedRounding& named : roundings) {
    if (named.rounding == fp16::Rounding::stochastic) continue;
    for (const std::size_t length : lengths)
      take(std::span(a.moderate).first(length), std::span(b.moderate).first(length), named.rounding);
    constexpr std::size_t few = 4;
    for (std::size_t first = 0; first + few <= a.any.a.size(); first += few)
      take(std::span(a.any.a).subspan(first, few), std::span(a.any.b).subspan(first, few), named.rounding);
  }
  return hash.value();
}

template <const Format& F>
void add_rows(std::vector<Row>& rows) {
  using Terms = std::span<const Bits<F>>;
  for (const fp16::SumOrder<F>& order : fp16::sum_orders<F>)
    rows.push_back({fmt::format("{} sum {}", fp16::name_of(F), order.name), [&] {
                      return hash_of<F>([&](Terms x, Terms, const fp16::Attributes& attributes) {
                        return order.sum(x, attributes);
                      });
                    }});
  if constexpr (contains(fp16::binary32, F)) {
    for (const fp16::DotOrder<F>& order : fp16::dot_orders<F>)
      rows.push_back({fmt::format("{} dot {}", fp16::name_of(F), order.name), [&] {
                        return hash_of<F>([&](Terms x, Terms y, const fp16::Attributes& attributes) {
                          return order.dot(x, y, attributes);
                        });
                      }});
  }
}

/// Sums of arrays of halves, which have a way of their own.
std::uint64_t hash_of_exact_sums() {
  using fp16::binary16;
  return hash_of<binary16>([](auto x, auto y, const fp16::Attributes& attributes) {
    fp16::ExactAccumulator<binary16> sum;
    fp16::add_values(sum, x);
    fp16::add_products(sum, x, y);
    return sum.rounded<binary16>(attributes);
  });
}

}  // namespace

std::vector<Row> sum_rows() {
  std::vector<Row> rows;
  fp16::for_each_format([&]<const Format & F>() {
    if constexpr (F.has_arithmetic()) add_rows<F>(rows);
  });
  rows.push_back({"binary16 arrays exact", hash_of_exact_sums});
  return rows;
}

}  // namespace halflab::selftest
