#pragma once
/// The elements of stored tensors as numbers.

#include <functional>
#include <span>
#include <vector>

#include "experiments/frame/tensor_files/element_reader.h"
#include "fp16/formats.h"

namespace halflab {

/// What a stored tensor's elements are. The type must be a floating-point format.
const fp16::Format& format_of(const experiments::tensor_files::StoredTensor& tensor);

/// Takes a run of elements as they are used; `first` is the place of the first one in the order of the file.
struct NumberConsumer {
  std::function<void(std::span<const float> values, std::uint64_t first)> floats;
  std::function<void(std::span<const double> values, std::uint64_t first)> doubles;
  /// Of binary16 and bfloat16; none: they come as floats.
  std::function<void(std::span<const std::uint16_t> codes, std::uint64_t first)> codes = {};
};

/// Calls the member for the tensor's format with all elements of the piece, in order and exactly: doubles for binary64,
/// else floats (or codes). Errors as of read_piece().
void read_numbers(const experiments::tensor_files::Piece& piece, const NumberConsumer& consume);

/// So many elements, as read_piece() gives them, as numbers, exactly; binary64 as doubles alone.
void decode_elements(experiments::tensor_files::Bytes elements,
                     const experiments::tensor_files::ElementType& type, std::span<float> values);
void decode_elements(experiments::tensor_files::Bytes elements,
                     const experiments::tensor_files::ElementType& type, std::span<double> values);

/// All elements of a tensor in C order, exactly, but for those of binary64 as floats, which are rounded once.
std::vector<float> floats_of(const experiments::tensor_files::StoredTensor& tensor);
std::vector<double> doubles_of(const experiments::tensor_files::StoredTensor& tensor);

/// One element's code, of any type of up to 64 bits.
std::uint64_t code_at(experiments::tensor_files::Bytes elements,
                      const experiments::tensor_files::ElementType& type, std::uint64_t i);

}  // namespace halflab
