#include "experiments/gpu/gpu_throughput/matrices.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include "experiments/gpu/gpu_throughput/buffers.h"
#include "fp16/bulk.h"
#include "fp16/cuda/mix.h"

namespace experiments::gpu_throughput {
namespace {

namespace cuda = fp16::cuda;

enum class Factor : std::uint64_t { a = 1, b = 2 };

/// Element `index` of a matrix.
std::uint16_t half_element(Contents contents, Factor factor, std::size_t index) {
  constexpr std::array<std::uint16_t, 4> minus_one_to_one{0xbc00, 0, 0, 0x3c00};
  const std::uint64_t random = cuda::mix(static_cast<std::uint64_t>(factor) << 40 | index);
  const std::uint64_t exponent = 9 + random % 5;
  return contents == Contents::integers
             ? minus_one_to_one[random >> 62]
             : static_cast<std::uint16_t>((random >> 32 & 0x83ff) | exponent << 10);
}

/// Has digits, too, that binary16 has no room for, unless it is an integer.
float float_element(Contents contents, Factor factor, std::size_t index) {
  constexpr std::uint32_t further_digits = 0x1fff;
  const float value = fp16::half_bits_to_float(half_element(contents, factor, index));
  if (contents == Contents::integers) return value;
  const auto random = static_cast<std::uint32_t>(cuda::mix(~index));
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | (random & further_digits));
}

/// An element as a row takes it: rounded to `format`, then widened to float.
float operand_element(fp16::Format format, Contents contents, Factor factor, std::size_t index) {
  return format == fp16::binary32 ? float_element(contents, factor, index)
                                  : fp16::half_bits_to_float(half_element(contents, factor, index));
}

template <typename Value, typename Element>
std::vector<Value> matrix_of(std::size_t elements, Contents contents, Factor factor, Element element) {
  std::vector<Value> matrix(elements);
  for (std::size_t i = 0; i < elements; ++i) matrix[i] = element(contents, factor, i);
  return matrix;
}

/// The first, a middle and the last row.
std::vector<std::size_t> rows_of_sample(std::size_t edge) {
  std::vector<std::size_t> rows{0};
  for (const std::size_t row : {edge / 2 + 1, edge - 1}) {
    if (row < edge && row != rows.back()) rows.push_back(row);
  }
  return rows;
}

/// Not all in the same place of a tile.
std::vector<std::size_t> columns_of_sample(std::size_t edge) {
  constexpr std::size_t wanted = 64;
  const std::size_t step = std::max<std::size_t>(1, edge / wanted);
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i * step < edge; ++i) columns.push_back((i * step + i % 8) % edge);
  return columns;
}

}  // namespace

Matrices::Matrices(int edge, bool with_floats)
    : edge_(static_cast<std::size_t>(edge)),
      with_floats_(with_floats),
      sampled_rows_(rows_of_sample(edge_)),
      sampled_columns_(columns_of_sample(edge_)) {
  const std::size_t elements = edge_ * edge_;
  const std::size_t sets = sets_beyond_cache(3 * sizeof(std::uint16_t) * elements);
  const std::size_t bytes_per_element = with_floats ? 16 : 8;
  require_device_memory((sets + 1) * bytes_per_element * elements);
  integers_ = std::move(operands_of(Contents::integers, 1).front());
  dense_ = operands_of(Contents::dense, sets);
}

std::vector<float> Matrices::sampled(const Operands& operands, fp16::Format output) const {
  const bool is_half = output == fp16::binary16;
  const std::size_t row_bytes = edge_ * (is_half ? 2 : 4);
  cuda::DeviceMemory one_row(row_bytes);
  std::vector<float> values, row_values(edge_);
  for (const std::size_t row : sampled_rows_) {
    cuda::copy_on_device(one_row.as<char>(), operands.d.as<char>() + row * row_bytes, row_bytes);
    if (is_half) {
      fp16::half_to_float(one_row.to_host<std::uint16_t>(), row_values);
    } else {
      one_row.copy_to(row_values);
    }
    for (const std::size_t column : sampled_columns_) values.push_back(row_values[column]);
  }
  return values;
}

std::vector<float> Matrices::expected(Contents contents, const cuda::GemmKernel& formats,
                                      const Multiply& multiply) const {
  const std::size_t rows = sampled_rows_.size(), columns = sampled_columns_.size();
  std::vector<float> chosen_a(rows * edge_), chosen_b(edge_ * columns), values(rows * columns);
  for (std::size_t k = 0; k < edge_; ++k) {
    for (std::size_t i = 0; i < rows; ++i)
      chosen_a[i * edge_ + k] =
          operand_element(formats.operands, contents, Factor::a, sampled_rows_[i] * edge_ + k);
    for (std::size_t j = 0; j < columns; ++j)
      chosen_b[k * columns + j] =
          operand_element(formats.operands, contents, Factor::b, k * edge_ + sampled_columns_[j]);
  }
  multiply(fp16::MatrixOperand{chosen_a.data(), fp16::binary32, rows, edge_, edge_},
           fp16::MatrixOperand{chosen_b.data(), fp16::binary32, edge_, columns, columns}, values.data(),
           columns);
  if (formats.output == fp16::binary16) {
    std::vector<std::uint16_t> rounded(values.size());
    fp16::float_to_half(values, rounded);
    fp16::half_to_float(rounded, values);
  }
  return values;
}

std::vector<Operands> Matrices::operands_of(Contents contents, std::size_t sets) const {
  const std::size_t elements = edge_ * edge_;
  const auto halves = [&](Factor factor) {
    return matrix_of<std::uint16_t>(elements, contents, factor, half_element);
  };
  const auto floats = [&](Factor factor) {
    return with_floats_ ? matrix_of<float>(elements, contents, factor, float_element) : std::vector<float>();
  };
  const std::vector<std::uint16_t> half_a = halves(Factor::a), half_b = halves(Factor::b);
  const std::vector<float> float_a = floats(Factor::a), float_b = floats(Factor::b);
  std::vector<Operands> all;
  for (std::size_t set = 0; set < sets; ++set) {
    all.push_back({.half_a = cuda::DeviceMemory(half_a),
                   .half_b = cuda::DeviceMemory(half_b),
                   .float_a = cuda::DeviceMemory(float_a),
                   .float_b = cuda::DeviceMemory(float_b),
                   .d = cuda::DeviceMemory(sizeof(float) * elements)});
  }
  return all;
}

}  // namespace experiments::gpu_throughput
