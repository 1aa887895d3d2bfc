// Another Eigen than that of peer_eigen.cpp: one program holds both, and the linker would take either for the other.
#define Eigen EigenForAvx2

#include "tests/bench/eigen_product.h"
#include "tests/bench/peers.h"

namespace bench {

void eigen_product_avx2(const float* a, const float* b, float* c, std::size_t n) {
  multiply_square(a, b, c, n);
}

}  // namespace bench
