#pragma once
/// Comparisons of the basic operations with the oracle that the quick and the exhaustive tests share.

#include <cstdint>

#include "fp16/arithmetic.h"
#include "fp16/formats.h"
#include "tests/oracle/format_agreement.h"

namespace fp16 {

/// Visits the formats of at most 8 bits that have arithmetic.
template <typename Visit>
void for_each_small_format(Visit visit) {
  for_each_format([&]<const Format & F>() {
    if constexpr (F.width() <= 8 && F.has_arithmetic()) visit.template operator()<F>();
  });
}

/// a + b, a - b, a * b and a / b.
template <const Format& F>
void compare_pair(oracle::Comparison& comparison, std::uint64_t a, std::uint64_t b,
                  const oracle::Options& options) {
  const oracle::ExactFormat& format = oracle::exact<F>();
  const auto x = static_cast<Bits<F>>(a), y = static_cast<Bits<F>>(b);
  const std::uint64_t p = oracle::operand<F>(options, a), q = oracle::operand<F>(options, b);
  oracle::agree<F>(comparison, oracle::add(format, p, q), options, {a, b, '+'},
                   [&](const Attributes& attributes) { return add<F>(x, y, attributes); });
  oracle::agree<F>(comparison, oracle::subtract(format, p, q), options, {a, b, '-'},
                   [&](const Attributes& attributes) { return subtract<F>(x, y, attributes); });
  oracle::agree<F>(comparison, oracle::multiply(format, p, q), options, {a, b, '*'},
                   [&](const Attributes& attributes) { return multiply<F>(x, y, attributes); });
  oracle::agree<F>(comparison, oracle::divide(format, p, q), options, {a, b, '/'},
                   [&](const Attributes& attributes) { return divide<F>(x, y, attributes); });
}

template <const Format& F>
void compare_root(oracle::Comparison& comparison, std::uint64_t a, const oracle::Options& options) {
  oracle::agree<F>(
      comparison, oracle::square_root(oracle::exact<F>(), oracle::operand<F>(options, a)), options, {a},
      [&](const Attributes& attributes) { return sqrt<F>(static_cast<Bits<F>>(a), attributes); });
}

template <const Format& F>
void compare_triple(oracle::Comparison& comparison, std::uint64_t a, std::uint64_t b, std::uint64_t c,
                    const oracle::Options& options) {
  oracle::agree<F>(comparison,
                   oracle::fma(oracle::exact<F>(), oracle::operand<F>(options, a),
                               oracle::operand<F>(options, b), oracle::operand<F>(options, c)),
                   options, {a, b, c}, [&](const Attributes& attributes) {
                     return fma<F>(static_cast<Bits<F>>(a), static_cast<Bits<F>>(b), static_cast<Bits<F>>(c),
                                   attributes);
                   });
}

}  // namespace fp16
