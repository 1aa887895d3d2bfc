#include "tools/halflab/selftest/products.h"

#include <array>
#include <string>

#include "fp16/half.h"
#include "fp16/philox.h"
#include "tools/halflab/selftest/groups.h"
#include "tools/halflab/selftest/inputs.h"

namespace halflab::selftest {
namespace {

using fp16::Accumulation;
using fp16::MatrixOperand;

struct Shape {
  std::size_t m, k, n;
};
constexpr std::array shapes{Shape{37, 41, 43}, Shape{16, 515, 64}};

/// Halves of a few scales, now and then of any class, as codes and as floats.
class Matrix {
 public:
  Matrix(std::size_t rows, std::size_t columns, bool has_specials, std::uint64_t stream)
      : rows_(rows), columns_(columns) {
    const fp16::Philox random{.key = 48, .stream = stream};
    for (std::size_t i = 0; i < rows * columns; ++i) {
      const auto [bits, scale, special, ignored] = random.block(i);
      const bool is_special = has_specials && special % 400 == 0;
      const std::uint32_t code = is_special ? bits : (bits & 0x83ff) | 0x2c00 | scale % 5 << 10;
      codes_.push_back(static_cast<std::uint16_t>(code));
      floats_.push_back(static_cast<float>(fp16::half::from_bits(codes_.back())));
    }
  }

  MatrixOperand halves() const { return {codes_.data(), fp16::binary16, rows_, columns_, columns_}; }
  MatrixOperand floats() const { return {floats_.data(), fp16::binary32, rows_, columns_, columns_}; }

 private:
  std::size_t rows_, columns_;
  std::vector<std::uint16_t> codes_;
  std::vector<float> floats_;
};

}  // namespace

template <class Real>
std::uint64_t hash_of_products(const Multiply<Real>& multiply) {
  Fnv1a hash;
  for (const auto [m, k, n] : shapes) {
    for (const bool has_specials : {false, true}) {
      std::vector<Real> c(m * n);
      const auto add = [&](const MatrixOperand& a, const MatrixOperand& b) {
        multiply(a, b, c.data());
        hash.add(std::span<const Real>(c));
      };
      const Matrix by_rows(m, k, has_specials, 0), by_columns(k, m, has_specials, 1);
      const Matrix right_by_rows(k, n, has_specials, 2), right_by_columns(n, k, has_specials, 3);
      add(by_rows.halves(), right_by_rows.halves());
      add(by_columns.halves().transposed(), right_by_columns.floats().transposed());
      add(by_rows.floats(), right_by_columns.halves().transposed());
    }
  }
  return hash.value();
}

template std::uint64_t hash_of_products(const Multiply<float>& multiply);
template std::uint64_t hash_of_products(const Multiply<double>& multiply);

std::vector<Row> product_rows() {
  std::vector<Row> rows;
  for (int i = 0; name_of(static_cast<Accumulation>(i)) != "unknown"; ++i) {
    const auto accumulation = static_cast<Accumulation>(i);
    const auto hash = [accumulation] {
      if (accumulation == Accumulation::fp64_fma_chain)
        return hash_of_products<double>(
            [](const MatrixOperand& a, const MatrixOperand& b, double* c) { gemm(a, b, c, b.columns); });
      return hash_of_products<float>([&](const MatrixOperand& a, const MatrixOperand& b, float* c) {
        gemm(a, b, c, b.columns, accumulation);
      });
    };
    rows.push_back({std::string(name_of(accumulation)), hash});
  }
  return rows;
}

}  // namespace halflab::selftest
