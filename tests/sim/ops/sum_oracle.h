#pragma once
/// The order of sim/ops/sums.h by its definition, one addition after the other, and what it may err by.

#include <bit>
#include <cstddef>
#include <span>
#include <vector>

#include "fp16/half.h"

namespace sum_oracle {

inline double rounded(const fp16::Format& format, double value) {
  if (format == fp16::binary64) return value;
  const auto single = static_cast<float>(value);  // the double sum of two floats rounds as their exact one
  return format == fp16::binary16 ? static_cast<float>(fp16::half(single)) : single;
}

/// The first 2^k plus the others, each found likewise, 2^k being the largest power of two below their number.
inline double pairwise(const fp16::Format& format, std::span<const double> values) {
  if (values.size() == 1) return values[0];
  const std::size_t left = std::bit_floor(values.size() - 1);
  return rounded(format, pairwise(format, values.first(left)) + pairwise(format, values.subspan(left)));
}

/// The terms of a column, from the first row to the last: blocks of 16, or one of all in binary16.
inline double down_column(const fp16::Format& format, std::span<const double> terms) {
  std::vector<double> blocks;
  for (std::size_t row = 0; row < terms.size(); ++row) {
    if (row == 0 || (row % 16 == 0 && format != fp16::binary16)) blocks.push_back(0);
    blocks.back() = rounded(format, blocks.back() + rounded(format, terms[row]));
  }
  return blocks.empty() ? 0 : pairwise(format, blocks);
}

/// The terms of one row: term i in column i mod 16, and at the end the columns folded by halves.
inline double along_row(const fp16::Format& format, std::span<const double> terms) {
  std::vector<double> columns;
  for (std::size_t j = 0; j < 16; ++j) {
    std::vector<double> of_column;
    for (std::size_t i = j; i < terms.size(); i += 16) of_column.push_back(terms[i]);
    // A column that the last block lacks has a zero in its place.
    const std::size_t rows = (terms.size() + 15) / 16;
    of_column.resize(rows, 0);
    columns.push_back(down_column(format, of_column));
  }
  for (std::size_t distance : {8, 4, 2, 1}) {
    for (std::size_t j = 0; j < distance; ++j)
      columns[j] = rounded(format, columns[j] + columns[j + distance]);
  }
  return columns[0];
}

/// How many roundings a term of n goes through at most, outside binary16. In its block 15, since the first
/// addition is to zero; one for each level of the pairwise tree; along a row 4 to fold the columns.
inline int roundings_down_column(std::size_t n) {
  const std::size_t blocks = (n + 15) / 16;
  return 15 + (blocks <= 1 ? 0 : std::bit_width(blocks - 1));
}
inline int roundings_along_row(std::size_t n) {
  return roundings_down_column((n + 15) / 16) + 4;
}

/// gamma(roundings) = roundings u / (1 - roundings u) of binary32, for at most 10^5 roundings: of a sum of
/// terms of one sign the relative error, of others that relative to the sum of magnitudes (Higham 2002, 4.2).
inline double gamma(double roundings) {
  return 1.01 * roundings * 0x1p-24;
}

}  // namespace sum_oracle
