/// Which arithmetic made this matrix product?
///
/// Given A, B and D, searches over accumulators, slices of k, their reduction and the epilogue for what
/// reproduces every bit of D, and says of outputs that nothing reproduces whether rounding in another order
/// can make them, an accumulator overflowed, or they are wrong. Without files it explains a product of its
/// own; with --cublas those that cuBLAS makes of A and B, in every way it can be asked for them.

#include "experiments/explain_gemm/explain.h"
#include "experiments/training/laboratory.h"

int main(int argc, char** argv) {
  experiments::explain_gemm::Options options;
  return experiments::run(argc, argv, experiments::explain_gemm::experiment("explain_gemm", options));
}
