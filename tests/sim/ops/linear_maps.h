#pragma once
/// Sums written out in the order and arithmetic that the headers of the linear maps state, and what holds a
/// map to them.

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fp16/codec.h"
#include "fp16/half.h"
#include "fp16/mma.h"
#include "sim/ops/operation.h"
#include "sim/tensor/random.h"

namespace linear_maps {

/// In what the operands are stored and how sums are formed.
struct Setting {
  std::string name;
  fp16::Format format;
  sim::Arithmetic arithmetic;
};

inline const std::vector<Setting>& settings() {
  using enum fp16::Accumulation;
  static const std::vector<Setting> all{
      {"fp32", fp16::binary32, {}},
      {"amp", fp16::binary16, {}},
      {"bf16", fp16::bfloat16, {}},
      {"fp16", fp16::binary16, {.products = {.chain = fp16_fma_chain}, .reductions = fp16::binary16}},
      {"mul_add", fp16::binary16, {.products = {.chain = fp16_mul_add_chain}, .reductions = fp16::binary16}},
      {"hopper",
       fp16::binary16,
       {.products = {.tensor_core = fp16::TensorCoreAccumulation{fp16::hopper, fp16::binary32}}}},
      {"volta",
       fp16::binary16,
       {.products = {.tensor_core = fp16::TensorCoreAccumulation{fp16::volta, fp16::binary16}},
        .reductions = fp16::binary16}},
      {"fp64", fp16::binary64, {.products = {.chain = fp64_fma_chain}, .reductions = fp16::binary64}},
  };
  return all;
}

inline sim::Tensor normal_values(const sim::Shape& shape, fp16::Format format, std::string_view purpose) {
  const sim::RandomStream random(5, purpose);
  std::vector<float> values(sim::element_count(shape));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = random.normal(i);
  sim::Tensor tensor(shape, format);
  sim::store({&tensor}, 0, std::span<const float>(values));
  return tensor;
}

inline double rounded(double value, const fp16::Format& format) {
  if (format == fp16::binary16) return fp16::half(static_cast<float>(value));
  if (format == fp16::bfloat16) {
    const std::uint32_t code = fp16::encode<fp16::bfloat16>(static_cast<float>(value)).bits;
    return std::bit_cast<float>(code << 16);
  }
  return value;
}

/// One sum of products, term after term.
struct Sum {
  const sim::Arithmetic& arithmetic;
  bool binary64;
  std::vector<double> a, b;

  void add(double x, double y) {
    a.push_back(x);
    b.push_back(y);
  }

  double chain() const {
    const fp16::Accumulation accumulation = arithmetic.products.chain;
    double in_double = 0;
    float in_float = 0;
    fp16::half in_half(0.0f);
    for (std::size_t k = 0; k < a.size(); ++k) {
      const auto x = static_cast<float>(a[k]), y = static_cast<float>(b[k]);
      in_double = std::fma(a[k], b[k], in_double);
      in_float = std::fma(x, y, in_float);
      if (accumulation == fp16::Accumulation::fp16_fma_chain)
        in_half = fp16::fma(fp16::half(x), fp16::half(y), in_half);
      if (accumulation == fp16::Accumulation::fp16_mul_add_chain)
        in_half = fp16::half(x) * fp16::half(y) + in_half;
    }
    if (binary64) return in_double;
    return accumulation == fp16::Accumulation::fp32_fma_chain ? in_float : float(in_half);
  }

  double on_tensor_core() const {
    const auto& [core, accumulator] = *arithmetic.products.tensor_core;
    std::vector<std::uint16_t> left, right;
    for (std::size_t k = 0; k < a.size(); ++k) {
      left.push_back(fp16::half(static_cast<float>(a[k])).bits());
      right.push_back(fp16::half(static_cast<float>(b[k])).bits());
    }
    if (accumulator == fp16::binary32)
      return std::bit_cast<float>(fp16::mma_dot<fp16::binary32>(core, left, right, 0));
    return fp16::half::from_bits(fp16::mma_dot<fp16::binary16>(core, left, right, 0));
  }

  double value() const { return arithmetic.products.tensor_core && !binary64 ? on_tensor_core() : chain(); }
};

/// Terms added one after another, each sum rounded to the format of reductions: what meets at a pixel.
struct Reduction {
  fp16::Format format;
  double sum = 0;

  void add(double term) {
    sum += term;
    if (format != fp16::binary64) sum = static_cast<float>(sum);  // the double sum of two floats rounds alike
    if (format == fp16::binary16) sum = fp16::half(static_cast<float>(sum));
  }
};

/// An operation with its inputs, run forward and backward as the tape does it.
struct Evaluation {
  const sim::Operation& operation;
  std::vector<sim::Tensor> inputs;
  sim::OperationOptions options = {};

  std::vector<const sim::Tensor*> pointers() const {
    std::vector<const sim::Tensor*> all;
    for (const sim::Tensor& input : inputs) all.push_back(&input);
    return all;
  }

  sim::Tensor forward(const Setting& setting, fp16::RoundingCounts* counts = nullptr) const {
    const std::vector<const sim::Tensor*> values = pointers();
    sim::OperationCall call{.inputs = values,
                            .options = options,
                            .arithmetic = setting.arithmetic,
                            .output_format = setting.format,
                            .training = true,
                            .random = sim::RandomStream(0, "unused"),
                            .counts = counts};
    return operation.forward(call);
  }

  /// Gradients of all inputs in the setting's format.
  std::vector<sim::Tensor> backward(const Setting& setting, const sim::Tensor& output, const sim::Tensor& dy,
                                    fp16::RoundingCounts* counts = nullptr) const {
    const std::vector<const sim::Tensor*> values = pointers();
    std::vector<sim::Tensor> gradients;
    for (const sim::Tensor& input : inputs) gradients.emplace_back(input.shape(), setting.format);
    std::vector<sim::RoundedOutput> outputs;
    for (sim::Tensor& gradient : gradients) outputs.push_back({.tensor = &gradient, .counts = counts});
    operation.backward({.inputs = values,
                        .output = output,
                        .saved = {},
                        .options = options,
                        .arithmetic = setting.arithmetic,
                        .training = true,
                        .random = sim::RandomStream(0, "unused"),
                        .output_gradient = dy,
                        .input_gradients = outputs});
    return gradients;
  }
};

using Expected = std::function<double(std::size_t index)>;

/// How many of every `step`-th element are not, to the bit, what is expected, rounded to the tensor's format.
inline std::size_t wrong_elements(const sim::Tensor& got, const Expected& expected, std::size_t step = 1) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); i += step) {
    const double value = rounded(expected(i), got.format());
    wrong += std::bit_cast<std::uint64_t>(got.element(i)) != std::bit_cast<std::uint64_t>(value);
  }
  return wrong;
}

inline void check(const sim::Tensor& got, const Setting& setting, const std::string& what,
                  const Expected& expected) {
  INFO(setting.name, ": ", what);
  REQUIRE(got.format() == setting.format);
  CHECK(wrong_elements(got, expected) == 0);
}

/// Also the twins: gradients in binary32 and binary64 of forward values in binary16.
inline std::vector<Setting> backward_settings(const Setting& forward) {
  std::vector<Setting> all{forward};
  if (forward.name == "amp" || forward.name == "fp16") {
    for (const fp16::Format& format : {fp16::binary32, fp16::binary64}) {
      all.push_back({forward.name + " twin in " + std::string(fp16::name_of(format)), format,
                     sim::uniform_arithmetic(format, 1)});
    }
  }
  return all;
}

/// C = A B for matrices given by their elements.
struct MatrixProduct {
  const Setting& setting;
  std::size_t depth;
  std::function<double(std::size_t row, std::size_t k)> a;
  std::function<double(std::size_t k, std::size_t column)> b;

  double operator()(std::size_t row, std::size_t column) const {
    Sum sum{setting.arithmetic, setting.format == fp16::binary64};
    for (std::size_t k = 0; k < depth; ++k) sum.add(a(row, k), b(k, column));
    return sum.value();
  }
};

/// x + y as the finished sums are added to: in binary32, in binary64 for such tensors.
inline double plus(double x, double y, const Setting& setting) {
  return setting.format == fp16::binary64 ? x + y : static_cast<float>(x) + static_cast<float>(y);
}
inline double times(double x, double y, const Setting& setting) {
  return setting.format == fp16::binary64 ? x * y : static_cast<float>(x) * static_cast<float>(y);
}

}  // namespace linear_maps
