#pragma once
/// What is known of tensor cores without the model: hand-derived results, and dot products recorded on GPUs.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fp16/mma_oracle.h"

namespace oracle::mma {

/// c + the sum of a[k] * b[k] on `core` is `expected`. Codes of c and `expected` are of the output's format.
struct Probe {
  std::string name;
  std::string core;  ///< a row of fp16::tensor_cores
  Output output;
  std::vector<std::uint16_t> a;
  std::vector<std::uint16_t> b;
  std::uint32_t c;
  std::uint32_t expected;
};

/// Hand-derived; every derivation stands beside its row.
std::vector<Probe> literal_probes();

/// The rows of `file` (columns a0.. b0.. c_f32 d_f32 d_f16, hexadecimal) as two probes each; the binary16
/// addend is c_f32 rounded to nearest-even. Throws std::runtime_error if the file is not such a table.
std::vector<Probe> gpu_vectors(const std::string& file, std::string_view core);

}  // namespace oracle::mma
