#pragma once
/// Matrices of halves for products in every layout.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fp16/gemm.h"
#include "fp16/half.h"

namespace test {

struct Sizes {
  std::size_t m, k, n;
};

/// Stored both ways, as halves and as floats, so that one product can be asked for in every combination.
struct Matrix {
  std::size_t rows, columns;
  std::vector<std::uint16_t> row_major, column_major;
  std::vector<float> row_major_floats, column_major_floats;

  template <class Next>
  Matrix(std::size_t r, std::size_t c, Next next)
      : rows(r), columns(c), row_major(r * c), column_major(r * c) {
    for (std::size_t i = 0; i < r; ++i) {
      for (std::size_t j = 0; j < c; ++j) row_major[i * c + j] = column_major[j * r + i] = next();
    }
    for (const std::uint16_t code : row_major) row_major_floats.push_back(fp16::half::from_bits(code));
    for (const std::uint16_t code : column_major) column_major_floats.push_back(fp16::half::from_bits(code));
  }
  fp16::half at(std::size_t i, std::size_t j) const {
    return fp16::half::from_bits(row_major[i * columns + j]);
  }
  std::span<const std::uint16_t> row(std::size_t i) const {
    return std::span(row_major).subspan(i * columns, columns);
  }
  std::span<const std::uint16_t> column(std::size_t j) const {
    return std::span(column_major).subspan(j * rows, rows);
  }
  fp16::MatrixOperand operand(bool transposed_storage, bool as_floats = false) const {
    const auto stored = [&](const auto& by_row, const auto& by_column) {
      return transposed_storage ? static_cast<const void*>(by_column.data()) : by_row.data();
    };
    const fp16::Format format = as_floats ? fp16::binary32 : fp16::binary16;
    const void* data =
        as_floats ? stored(row_major_floats, column_major_floats) : stored(row_major, column_major);
    return {data, format, rows, columns, transposed_storage ? 1 : columns, transposed_storage ? rows : 1};
  }
};

inline std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

}  // namespace test
