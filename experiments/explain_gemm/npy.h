#pragma once
/// Matrices of halves and floats as NumPy's .npy files (NumPy Enhancement Proposal 1 and its versions 1.0 to
/// 3.0).

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "fp16/formats.h"

namespace experiments::explain_gemm {

struct Matrix {
  fp16::Format format = fp16::binary16;  ///< binary16 or binary32
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<std::uint32_t> codes;  ///< row-major

  std::uint32_t at(std::size_t row, std::size_t column) const { return codes[row * columns + column]; }
};

/// Reads a little-endian array of two dimensions, neither of them 0, of float16 or float32, in C or Fortran
/// order. Throws std::runtime_error, naming the file, what was found and what is allowed.
Matrix read_npy(const std::filesystem::path& file);

/// Writes it in C order, as version 1.0. Throws std::runtime_error where it cannot be written.
void write_npy(const std::filesystem::path& file, const Matrix& matrix);

}  // namespace experiments::explain_gemm
