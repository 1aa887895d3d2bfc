#include "fp16/eigen.h"

#include <doctest/doctest.h>

#include <Eigen/Core>
#include <Eigen/LU>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>

#include "fp16/half_text.h"
#include "tests/oracle/hard_cases.h"

namespace fp16 {
namespace {

using Matrix = Eigen::Matrix<half, Eigen::Dynamic, Eigen::Dynamic>;
using Exact = Eigen::MatrixXd;

TEST_CASE("Eigen: the traits of half") {
  using Traits = Eigen::NumTraits<half>;
  CHECK(Traits::epsilon() == half(0x1p-10));
  CHECK(Traits::highest() == half(65504));
  CHECK(Traits::lowest() == half(-65504));
  CHECK(isinf(Traits::infinity()));
  CHECK(isnan(Traits::quiet_NaN()));
  CHECK(Traits::digits10() == 3);
  CHECK_FALSE(Traits::IsInteger);
  CHECK(Traits::IsSigned);
  CHECK_FALSE(Traits::IsComplex);
}

TEST_CASE("Eigen: Random draws numbers from -1 to 1, of both signs and many sizes") {
  const Matrix drawn = Matrix::Random(40, 50);
  CHECK(drawn.minCoeff() >= -1_h);
  CHECK(drawn.maxCoeff() <= 1_h);
  CHECK(drawn.cast<double>().mean() == doctest::Approx(0).epsilon(0.1));
  CHECK(drawn.cast<double>().array().square().mean() == doctest::Approx(1.0 / 3).epsilon(0.1));
}

Matrix random_matrix(Eigen::Index rows, Eigen::Index columns, std::uint64_t seed, double largest) {
  oracle::RandomBits random(seed);
  return Matrix::NullaryExpr(rows, columns,
                             [&] { return half(largest * (random.below(2049) - 1024) / 1024); });
}

TEST_CASE("Eigen: products without rounding are exact, in every size class") {
  for (const int size : {1, 2, 5, 30, 70}) {
    CAPTURE(size);
    // Whole numbers up to 3: sums of 70 products stay below 2048.
    const Matrix a =
        random_matrix(size, size + 1, 1, 3).unaryExpr([](half x) { return half(std::floor(x)); });
    const Matrix b =
        random_matrix(size + 1, size, 2, 3).unaryExpr([](half x) { return half(std::floor(x)); });
    const Matrix product = a * b;
    CHECK(product.cast<double>() == Exact(a.cast<double>() * b.cast<double>()));
    CHECK(Matrix(b.transpose() * a.transpose()) == product.transpose());
  }
  const Eigen::Matrix<half, 2, 2> a{{1_h, 2_h}, {3_h, 4_h}};
  CHECK((a * a).eval() == Eigen::Matrix<half, 2, 2>{{7_h, 10_h}, {15_h, 22_h}});
}

TEST_CASE("Eigen: a product rounds before it is added") {
  // x*x = 1 + 2^-9 + 2^-20 rounds to y; one rounding at the end would leave 2^-20.
  const half x(1 + 0x1p-10), y(1 + 0x1p-9);
  const Matrix row{{x, -1_h}}, column{{x}, {y}};
  CHECK((row * column).value() == 0_h);
}

TEST_CASE("Eigen: errors of products are those of one rounding a step") {
  for (const int size : {3, 12, 40, 100}) {
    CAPTURE(size);
    const Matrix a = random_matrix(size, size, 3, 1), b = random_matrix(size, size, 4, 1);
    const Exact exact = a.cast<double>() * b.cast<double>();
    const Exact magnitudes = a.cast<double>().cwiseAbs() * b.cast<double>().cwiseAbs();
    // Each term passes through at most `size` roundings, its product's included, in whatever order; a product
    // below 2^-14 errs by at most 2^-25 instead. The sums in double err by less than 2^-40 of their terms.
    const double relative = std::pow(1 + binary16.unit_roundoff(), size) - 1 + 0x1p-40;
    const Exact bound = relative * magnitudes + Exact::Constant(size, size, size * 0x1p-24);
    const Exact error = (Matrix(a * b).cast<double>() - exact).cwiseAbs();
    CHECK((error.array() <= bound.array()).all());
    CHECK(error.maxCoeff() > 0);
  }
}

TEST_CASE("Eigen: sums, norms, comparison, solving and printing") {
  const Eigen::Matrix<half, 2, 2> a{{2_h, 1_h}, {1_h, 1_h}};
  CHECK(a.sum() == 5_h);
  CHECK(a.col(0).squaredNorm() == 5_h);
  CHECK(Eigen::Matrix<half, 2, 1>(3_h, 4_h).norm() == 5_h);
  CHECK(a.isApprox(a * half(1 + 0x1p-10)));
  CHECK_FALSE(a.isApprox(a * 1.1_h));
  const Eigen::Matrix<half, 2, 1> right(3_h, 2_h);
  CHECK(a.partialPivLu().solve(right) == Eigen::Matrix<half, 2, 1>(1_h, 1_h));
  CHECK(a.cast<float>().determinant() == 1.0f);
  std::ostringstream text;
  text << Eigen::Matrix<half, 1, 2>(0.1_h, 2_h);
  CHECK(text.str() == "0.1   2");
}

}  // namespace
}  // namespace fp16
