#pragma once
/// Matrices of FP16, bfloat16 and FP32 numbers, from .npy, .npz and safetensors files and as .npy.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "fp16/formats.h"

namespace experiments::explain_gemm {

struct Matrix {
  fp16::Format format = fp16::binary16;  ///< binary16, bfloat16 or binary32
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<std::uint32_t> codes;  ///< row-major

  std::uint32_t at(std::size_t row, std::size_t column) const { return codes[row * columns + column]; }
};

/// Reads an array of two dimensions, neither of them 0, of float16, bfloat16 or float32: "FILE", or "FILE:NAME" of one that holds
/// several. Throws std::runtime_error, naming the file, what was found and what is allowed.
Matrix read_matrix(const std::string& place);

/// Writes a .npy file in C order. Throws std::runtime_error where it cannot be written.
void write_matrix(const std::filesystem::path& file, const Matrix& matrix);

}  // namespace experiments::explain_gemm
