#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "fp16/bulk.h"
#include "tests/fp16/vector/hard_operands.h"
#include "tests/fp16/vector/operation_rows.h"

namespace fp16 {
namespace {

/// Every pair of codes of a format of at most 8 bits.
template <const Format& F>
Operands<F> all_pairs() {
  Operands<F> operands;
  for (std::uint32_t pair = 0; pair < 1u << 2 * F.width(); ++pair) {
    const auto b = static_cast<Bits<F>>(pair & ((1u << F.width()) - 1));
    operands.a.push_back(static_cast<Bits<F>>(pair >> F.width()));
    operands.b.push_back(b);
    operands.c.push_back(static_cast<Bits<F>>((pair * 0x9E3779B9u) >> (32 - F.width())));
  }
  return operands;
}

template <const Format& F>
void check_operation(const OperationRow<F>& row, const Operands<F>& in,
                     std::span<const std::uint64_t> random_bits, const Attributes& attributes) {
  std::vector<Bits<F>> expected(in.a.size());
  RoundingCounts expected_counts;
  using In = std::span<const Bits<F>>;
  transform<F>(row.scalar, std::span(expected), attributes,
               {.counts = &expected_counts, .random_bits_64 = random_bits}, In(in.a), In(in.b), In(in.c));
  for (const VectorPath path : available_vector_paths()) {
    CAPTURE(name_of(path));
    std::vector<Bits<F>> out(in.a.size());
    row.apply(in, out, attributes, {.path = path, .random_bits_64 = random_bits});
    CHECK(out == expected);
    RoundingCounts counts;
    row.apply(in, out, attributes,
              {.path = path, .threads = 2, .counts = &counts, .random_bits_64 = random_bits});
    CHECK(out == expected);
    CHECK(counts == expected_counts);
  }
}

/// Random bits where they decide: at the fraction that the exact result has above the number before it, or would have
/// were the exponents unbounded, beside that, at the ends of their range, and anywhere.
template <const Format& F>
std::vector<std::uint64_t> deciding_bits(const OperationRow<F>& row, const Operands<F>& in) {
  oracle::RandomBits random(47);
  std::vector<std::uint64_t> bits;
  for (std::size_t i = 0; i < in.a.size(); ++i) {
    const Bits<F> before = row.scalar(in.a[i], in.b[i], in.c[i], {.rounding = Rounding::toward_zero}).bits;
    const Bits<F> after = row.scalar(in.a[i], in.b[i], in.c[i], {.rounding = Rounding::to_odd}).bits;
    const Bits<F> next = before == after ? static_cast<Bits<F>>(before + 1) : after;
    const long double exact = row.approximate(decode<F>(in.a[i]), decode<F>(in.b[i]), decode<F>(in.c[i]));
    const long double fraction =
        (exact - static_cast<long double>(decode<F>(before))) / (decode<F>(next) - decode<F>(before));
    const bool usable = fraction > 0 && fraction < 1;
    const std::uint64_t leading = usable ? static_cast<std::uint64_t>(fraction * 0x1p64L) : 0;
    const long double units = std::abs(exact) / (F.min_normal() * F.unit_roundoff());  // right below 2^emin
    const long double whole = std::floor(units);
    const std::uint64_t tiny = units < 0x1p30L ? static_cast<std::uint64_t>((units - whole) * 0x1p64L) : 0;
    const std::uint64_t choices[]{leading,       leading - 1, leading + 1, 0,       ~std::uint64_t{0},
                                  random.next(), tiny,        tiny - 1,    tiny + 1};
    bits.push_back(choices[i % std::size(choices)]);
  }
  return bits;
}

TEST_CASE("array arithmetic: all formats, directions, attributes and paths have the scalar bits and counts") {
  for_each_format([]<const Format & F>() {
    if constexpr (F.has_arithmetic() && F.precision <= 11) {
      CAPTURE(name_of(F));
      const Operands<F> in = hard_operands<F>(6'007);
      for (const OperationRow<F>& row : operation_rows<F>) {
        CAPTURE(row.name);
        const std::vector<std::uint64_t> bits = deciding_bits(row, in);
        for (const Rounding rounding : every_rounding) {
          CAPTURE(static_cast<int>(rounding));
          for (Attributes attributes : border_attributes) {
            attributes.rounding = rounding;
            check_operation(row, in, bits, attributes);
          }
          if constexpr (F.width() <= 8) {
            const Operands<F> all = all_pairs<F>();
            check_operation(row, all, deciding_bits(row, all), {.rounding = rounding});
          }
        }
      }
    }
  });
}

/// Those operands whose result is a number, on which nothing but rounding decides.
template <const Format& F>
Operands<F> with_finite_results(const OperationRow<F>& row, const Operands<F>& in) {
  Operands<F> kept;
  for (std::size_t i = 0; i < in.a.size(); ++i) {
    if (!is_finite<F>(row.scalar(in.a[i], in.b[i], in.c[i], {}).bits)) continue;
    kept.a.push_back(in.a[i]);
    kept.b.push_back(in.b[i]);
    kept.c.push_back(in.c[i]);
  }
  return kept;
}

TEST_CASE("array arithmetic: halves whose results are numbers, many of them zeros or subnormal") {
  const Operands<binary16> halves = hard_operands<binary16>(100'000);
  for (const OperationRow<binary16>& row : operation_rows<binary16>) {
    CAPTURE(row.name);
    const Operands<binary16> in = with_finite_results(row, halves);
    REQUIRE(in.a.size() > 30'000);
    for (const Attributes& attributes : border_attributes) check_operation(row, in, {}, attributes);
    Operands<binary16> sparse = in;
    for (std::size_t i = 0; i < sparse.a.size(); ++i) {
      if (i % 3 != 0) sparse.a[i] = sparse.c[i] = static_cast<std::uint16_t>(i % 2 << 15);
    }
    check_operation(row, with_finite_results(row, sparse), {}, {});
  }
}

TEST_CASE("array arithmetic: more halves, and a format without vectorised operations") {
  const Operands<binary16> halves = hard_operands<binary16>(60'007);
  for (const OperationRow<binary16>& row : operation_rows<binary16>) {
    CAPTURE(row.name);
    const std::vector<std::uint64_t> bits = deciding_bits(row, halves);
    for (const Rounding rounding : every_rounding) check_operation(row, halves, bits, {.rounding = rounding});
  }
  const Operands<binary32> floats = hard_operands<binary32>(1'000);
  const std::vector<std::uint64_t> bits(1'000, 0x123456789abcdef);
  for (const OperationRow<binary32>& row : operation_rows<binary32>)
    check_operation(row, floats, bits, {.flush_to_zero = true});
}

}  // namespace
}  // namespace fp16
