#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "fp16/codec.h"
#include "fp16/cuda/device.h"
#include "fp16/cuda/device_memory.h"
#include "fp16/cuda/gemm.h"
#include "fp16/cuda/mix.h"
#include "fp16/formats.h"
#include "fp16/gemm.h"
#include "fp16/half.h"

namespace cuda = fp16::cuda;

namespace {

struct Shape {
  std::size_t m;
  std::size_t n;
  std::size_t k;
};

/// Operands as codes of binary16.
struct Matrices {
  std::vector<std::uint16_t> a;
  std::vector<std::uint16_t> b;
};

/// Finite halves of 2^-8 ... 2^7 in size, of both signs, in no matrix alike. Every eighth row of A is so
/// small that all its sums are subnormal or vanish: as halves of an FMA chain to a zero of either sign.
std::vector<std::uint16_t> codes_of(std::size_t rows, std::size_t columns, std::uint64_t seed, bool small) {
  std::vector<std::uint16_t> codes(rows * columns);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::uint64_t random = cuda::mix(seed * 0x9e3779b97f4a7c15 + i);
    const std::uint64_t exponent = small && i / columns % 8 == 7 ? 0 : 7 + (random >> 32) % 16;
    codes[i] = static_cast<std::uint16_t>((random & (exponent == 0 ? 0x8001 : 0x83ff)) | exponent << 10);
  }
  return codes;
}

Matrices moderate(const Shape& shape) {
  return {codes_of(shape.m, shape.k, 1, true), codes_of(shape.k, shape.n, 2, false)};
}

std::vector<float> widened(const std::vector<std::uint16_t>& codes) {
  std::vector<float> values;
  for (const std::uint16_t code : codes) values.push_back(fp16::half_bits_to_float(code));
  return values;
}

/// Operands of binary32 with all bits of their significands in use, as large as the halves; the subnormal
/// ones so small that their products are subnormal, too.
std::vector<float> binary32_operands(const std::vector<std::uint16_t>& codes) {
  std::vector<float> values = widened(codes);
  for (float& value : values) value *= std::fabs(value) < 0x1p-14f ? 0x1.2345p-110f : 0x1.00369cp0f;
  return values;
}

/// D by the device, as floats.
std::vector<float> run(const cuda::GemmKernel& kernel, const Shape& shape, const Matrices& in) {
  const bool wide = kernel.operands == fp16::binary32;
  const cuda::DeviceMemory a = wide ? cuda::DeviceMemory(binary32_operands(in.a)) : cuda::DeviceMemory(in.a);
  const cuda::DeviceMemory b = wide ? cuda::DeviceMemory(binary32_operands(in.b)) : cuda::DeviceMemory(in.b);
  const std::size_t size = shape.m * shape.n,
                    bytes = size * static_cast<std::size_t>(kernel.output.size_bytes());
  constexpr std::size_t margin = 4096;
  cuda::DeviceMemory d(bytes + margin);
  d.fill(0xa5);
  cuda::gemm(
      kernel,
      {.m = shape.m, .n = shape.n, .k = shape.k, .a = a.as<void>(), .b = b.as<void>(), .d = d.as<void>()});
  const std::vector<unsigned char> all = d.to_host<unsigned char>();
  CHECK(std::all_of(all.begin() + static_cast<std::ptrdiff_t>(bytes), all.end(),
                    [](unsigned char byte) { return byte == 0xa5; }));
  if (kernel.output == fp16::binary16) {
    std::vector<std::uint16_t> codes(size);
    d.copy_to(codes);
    return widened(codes);
  }
  std::vector<float> values(size);
  d.copy_to(values);
  return values;
}

/// D by the software, as floats.
std::vector<float> expected(const cuda::GemmKernel& kernel, const Shape& shape, const Matrices& in) {
  std::vector<float> d(shape.m * shape.n, 0.0f);
  const std::vector<float> wide_a = binary32_operands(in.a), wide_b = binary32_operands(in.b);
  const auto operand = [&](const void* codes, const void* floats, std::size_t rows, std::size_t columns) {
    const bool wide = kernel.operands == fp16::binary32;
    return fp16::MatrixOperand{wide ? floats : codes, kernel.operands, rows, columns, columns};
  };
  const fp16::MatrixOperand a = operand(in.a.data(), wide_a.data(), shape.m, shape.k);
  const fp16::MatrixOperand b = operand(in.b.data(), wide_b.data(), shape.k, shape.n);
  if (kernel.instruction == cuda::GemmInstruction::fma) {
    fp16::gemm(a, b, d.data(), shape.n,
               kernel.accumulator == fp16::binary32 ? fp16::Accumulation::fp32_fma_chain
                                                    : fp16::Accumulation::fp16_fma_chain);
  } else {
    fp16::gemm(a, b, d.data(), shape.n,
               fp16::TensorCoreAccumulation{cuda::tensor_core_of(cuda::device().compute_capability),
                                            kernel.accumulator});
  }
  if (kernel.output == fp16::binary16 && kernel.accumulator == fp16::binary32) {
    for (float& value : d) value = fp16::half_bits_to_float(fp16::float_to_half_bits(value));
  }
  return d;
}

/// Operands with k filled up with +0 to a multiple of 16.
Matrices filled_up(const Shape& shape, std::size_t k, const Matrices& in) {
  Matrices out{std::vector<std::uint16_t>(shape.m * k), in.b};
  for (std::size_t row = 0; row < shape.m; ++row)
    std::copy_n(in.a.begin() + static_cast<std::ptrdiff_t>(row * shape.k), shape.k,
                out.a.begin() + static_cast<std::ptrdiff_t>(row * k));
  out.b.resize(k * shape.n);
  return out;
}

int count_wrong(const std::vector<float>& found, const std::vector<float>& wanted, std::size_t columns) {
  REQUIRE(found.size() == wanted.size());
  int wrong = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool same = std::bit_cast<std::uint32_t>(found[i]) == std::bit_cast<std::uint32_t>(wanted[i]) ||
                      (std::isnan(found[i]) && std::isnan(wanted[i]));
    if (!same && wrong++ == 0)
      MESSAGE("first at row " << i / columns << ", column " << i % columns << ": " << found[i]
                              << " instead of " << wanted[i]);
  }
  return wrong;
}

void check(const cuda::GemmKernel& kernel, const Shape& shape, const Matrices& in) {
  CAPTURE(kernel.name);
  CAPTURE(shape.m);
  CAPTURE(shape.n);
  CAPTURE(shape.k);
  const std::size_t k = kernel.instruction == cuda::GemmInstruction::fma ? shape.k : (shape.k + 15) / 16 * 16;
  const std::vector<float> wanted = expected(kernel, {shape.m, shape.n, k}, filled_up(shape, k, in));
  CHECK(count_wrong(run(kernel, shape, in), wanted, shape.n) == 0);
}

/// Rows 0, rows_apart, 2 * rows_apart ... of a matrix.
template <typename Value>
std::vector<Value> first_rows(const std::vector<Value>& matrix, std::size_t columns, std::size_t rows_apart) {
  std::vector<Value> rows;
  for (std::size_t at = 0; at < matrix.size(); at += columns * rows_apart) {
    const auto row = matrix.begin() + static_cast<std::ptrdiff_t>(at);
    rows.insert(rows.end(), row, row + static_cast<std::ptrdiff_t>(columns));
  }
  return rows;
}

/// Calls `check_kernel` for every kernel that the device can run.
template <typename Check>
void for_each_kernel(const Check& check_kernel) {
  if (!cuda::available()) {
    MESSAGE("skipped: " << cuda::unavailable_reason());
    return;
  }
  for (const cuda::GemmKernel& kernel : cuda::gemm_kernels()) {
    if (const std::string reason = cuda::unavailable_reason(kernel); !reason.empty()) {
      MESSAGE("not tried: " << reason);
    } else {
      check_kernel(kernel);
    }
  }
}

}  // namespace

TEST_CASE("matrix products of the device are the stated chains at any size") {
  // Less than a tile, a tile, one more in each direction; all k about the lengths of steps and stages; rows
  // that are whole chunks of 16 bytes and others.
  const Shape shapes[] = {{1, 1, 1},      {1, 1, 0},     {3, 5, 7},       {16, 8, 16},
                          {17, 9, 17},    {5, 16, 8},    {40, 24, 31},    {40, 24, 32},
                          {40, 24, 33},   {8, 40, 48},   {64, 64, 64},    {65, 72, 80},
                          {128, 128, 96}, {31, 264, 40}, {130, 136, 136}, {129, 257, 65}};
  for_each_kernel([&](const cuda::GemmKernel& kernel) {
    for (const Shape& shape : shapes) check(kernel, shape, moderate(shape));
  });
}

TEST_CASE("matrix products of the device go through many stages in order") {
  const Shape shapes[] = {{24, 16, 2048}, {7, 3, 1203}};
  for_each_kernel([&](const cuda::GemmKernel& kernel) {
    for (const Shape& shape : shapes) check(kernel, shape, moderate(shape));
  });
}

TEST_CASE("matrix products of the device cover the output with tiles") {
  const Shape shapes[] = {{1100, 320, 16}, {100, 1032, 8}};
  for_each_kernel([&](const cuda::GemmKernel& kernel) {
    for (const Shape& shape : shapes) check(kernel, shape, moderate(shape));
  });
}

TEST_CASE("matrix products of the device are the same, and right, with every multiprocessor at work") {
  for_each_kernel([&](const cuda::GemmKernel& kernel) {
    CAPTURE(kernel.name);
    const auto multiprocessors = static_cast<std::size_t>(cuda::device_limits().multiprocessors);
    const std::size_t rows_apart = 37;
    const Shape shape{256, 256 * multiprocessors, 16 * (multiprocessors / 2 + 1)};
    const Matrices in = moderate(shape);
    const std::vector<float> found = run(kernel, shape, in);
    CHECK(count_wrong(run(kernel, shape, in), found, shape.n) == 0);
    const Matrices some{first_rows(in.a, shape.k, rows_apart), in.b};
    const std::vector<float> wanted = expected(kernel, {some.a.size() / shape.k, shape.n, shape.k}, some);
    CHECK(count_wrong(first_rows(found, shape.n, rows_apart), wanted, shape.n) == 0);
  });
}

TEST_CASE("matrix products of the device pass on infinities and NaNs") {
  const Shape shape{33, 48, 40};
  Matrices in = moderate(shape);
  in.a[3 * shape.k + 5] = 0x7c00;
  in.a[9 * shape.k + 39] = 0xfc00;
  in.a[20 * shape.k + 17] = 0x7e00;
  in.b[5 * shape.n + 7] = 0;
  in.b[30 * shape.n + 11] = 0x7c00;
  for_each_kernel([&](const cuda::GemmKernel& kernel) { check(kernel, shape, in); });
}
