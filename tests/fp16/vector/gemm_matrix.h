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

/// Stored both ways, so that one product can be asked for in every combination of layouts.
struct Matrix {
  std::size_t rows, columns;
  std::vector<std::uint16_t> row_major, column_major;

  template <class Next>
  Matrix(std::size_t r, std::size_t c, Next next)
      : rows(r), columns(c), row_major(r * c), column_major(r * c) {
    for (std::size_t i = 0; i < r; ++i) {
      for (std::size_t j = 0; j < c; ++j) row_major[i * c + j] = column_major[j * r + i] = next();
    }
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
  fp16::MatrixOperand operand(bool transposed_storage) const {
    return transposed_storage
               ? fp16::MatrixOperand{column_major.data(), fp16::binary16, rows, columns, 1, rows}
               : fp16::MatrixOperand{row_major.data(), fp16::binary16, rows, columns, columns, 1};
  }
};

inline std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

}  // namespace test
