#include <Eigen/Dense>

#include "tests/bench/eigen_product.h"
#include "tests/bench/scalar_loops.h"

namespace bench {
namespace {

struct EigenHalf {
  using Number = Eigen::half;
  static Number from_bits(Half bits) { return Eigen::numext::bit_cast<Number>(bits); }
  static Half to_bits(Number x) { return Eigen::numext::bit_cast<Half>(x); }
};

}  // namespace

const HalfLoops eigen_half = ScalarLoops<EigenHalf>::loops("eigen_half");

void eigen_product(const float* a, const float* b, float* c, std::size_t n) {
  multiply_square(a, b, c, n);
}

}  // namespace bench
