#include "fp16/cuda/device.h"

namespace fp16::cuda {

bool available() {
  return unavailable_reason().empty();
}

const TensorCore& tensor_core_of(int compute_capability) {
  return compute_capability >= 100  ? blackwell
         : compute_capability >= 90 ? hopper
         : compute_capability == 89 ? ada
         : compute_capability >= 80 ? ampere
         : compute_capability >= 75 ? turing
                                    : volta;
}

}  // namespace fp16::cuda
