#include "experiments/gpu/probes/intrinsics.h"
#include "experiments/gpu/probes/traversal.cuh"

namespace experiments::probes {

using namespace fp16::ops;

namespace {

#define FP16_NATIVE_OPERATOR(name, parameters, ...) \
  struct native_operator_##name {                   \
    template <typename Value>                       \
    __device__ auto operator() parameters const {   \
      __VA_ARGS__;                                  \
    }                                               \
  };                                                \
  struct native_operator_##name##_half2 : native_operator_##name {};

FP16_NATIVE_OPERATOR(plus, (Value a, Value b), return a + b)
FP16_NATIVE_OPERATOR(minus, (Value a, Value b), return a - b)
FP16_NATIVE_OPERATOR(multiplies, (Value a, Value b), return a * b)
FP16_NATIVE_OPERATOR(divides, (Value a, Value b), return a / b)
FP16_NATIVE_OPERATOR(plus_assign, (Value a, Value b), a += b; return a)
FP16_NATIVE_OPERATOR(minus_assign, (Value a, Value b), a -= b; return a)
FP16_NATIVE_OPERATOR(multiplies_assign, (Value a, Value b), a *= b; return a)
FP16_NATIVE_OPERATOR(divides_assign, (Value a, Value b), a /= b; return a)
FP16_NATIVE_OPERATOR(increment, (Value a), ++a; return a)
FP16_NATIVE_OPERATOR(decrement, (Value a), --a; return a)
FP16_NATIVE_OPERATOR(postfix_increment, (Value a), a++; return a)
FP16_NATIVE_OPERATOR(postfix_decrement, (Value a), a--; return a)
FP16_NATIVE_OPERATOR(negate, (Value a), return -a)
FP16_NATIVE_OPERATOR(unary_plus, (Value a), return +a)
FP16_NATIVE_OPERATOR(equal_to, (Value a, Value b), return a == b)
FP16_NATIVE_OPERATOR(not_equal_to, (Value a, Value b), return a != b)
FP16_NATIVE_OPERATOR(less, (Value a, Value b), return a < b)
FP16_NATIVE_OPERATOR(less_equal, (Value a, Value b), return a <= b)
FP16_NATIVE_OPERATOR(greater, (Value a, Value b), return a > b)
FP16_NATIVE_OPERATOR(greater_equal, (Value a, Value b), return a >= b)

/// One answer, of two halves.
struct native___hcmadd {
  __device__ std::uint32_t operator()(__half2 a, __half2 b, __half2 c) const {
    const CodePair codes = codes_of(__hcmadd(a, b, c));
    return static_cast<std::uint32_t>(codes[1] << 16 | codes[0]);
  }
};

}  // namespace

std::vector<SweepKernels> operator_kernels() {
  return {FP16_OPERATOR_INTRINSICS(FP16_SWEEP_KERNELS)};
}

}  // namespace experiments::probes
