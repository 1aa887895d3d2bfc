#pragma once
/// A tensor as codes and scales.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/frame/tensor_files/safetensors.h"
#include "experiments/frame/tensor_files/stored_tensor.h"
#include "tools/halflab/quantize/options.h"

namespace halflab::quantize {

struct Quantized {
  std::vector<std::byte> codes;       ///< packed, as a file has them
  std::vector<std::uint8_t> scales;   ///< of blocks
  std::optional<float> tensor_scale;  ///< a value is code * scale of its block * this
  std::uint64_t overflowed = 0;       ///< finite values beyond the largest one of the format or block
};

/// Takes a run of a tensor's values in C order, and what their codes stand for, exactly.
using ValueConsumer = std::function<void(std::span<const double> values, std::span<const double> decoded)>;

/// A tensor's codes, in C order; `consume` is called with all values, run by run. Blocks lie along the last dimension; a
/// block format takes values as binary32, to which those of binary64 are rounded first. Scalar formats round each value
/// once.
Quantized quantize(const experiments::tensor_files::StoredTensor& tensor, const Recipe& recipe, int threads,
                   const ValueConsumer& consume);

/// How a quantized tensor lies in a file, by the names of NVIDIA's Model Optimizer: NAME, the codes, of 4 and 6 bits
/// as bytes (U8), each line of the last dimension packed from its lowest bits on; NAME_scale, those of the blocks,
/// and NAME_scale_2, F32, what a whole tensor is multiplied by, too. Of a scalar format the latter is NAME_scale.
/// The spans are those of `quantized`.
std::vector<experiments::tensor_files::TensorToWrite> parts_of(
    const experiments::tensor_files::StoredTensor& tensor, const Quantized& quantized, const Recipe& recipe);

}  // namespace halflab::quantize
