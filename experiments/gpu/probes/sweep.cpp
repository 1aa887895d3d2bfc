#include "experiments/gpu/probes/sweep.h"

#include "experiments/gpu/probes/index.h"
#include "experiments/gpu/probes/intrinsics.h"

namespace experiments::probes {

namespace {

using namespace fp16::ops;

/// Those of device_operations.h are in no list.
template <typename Functor>
const Operation* operation_of() {
  if (const Operation* listed = fp16::find_operation(Functor::name())) return listed;
  static const Operation unlisted = ops::detail::describe<Functor>();
  return &unlisted;
}

template <typename Functor>
Sweep sweep_of(std::string_view function, Pipe pipe) {
  return {.function = function,
          .pipe = pipe,
          .operation = operation_of<Functor>(),
          .index_bits = index_bits<SignatureOf<Functor>>};
}

}  // namespace

std::string_view name_of(Pipe pipe) {
  switch (pipe) {
    case Pipe::scalar:
      return "scalar";
    case Pipe::packed:
      return "packed";
    case Pipe::mask:
      return "mask";
    case Pipe::both:
      return "both";
  }
  return "";
}

bool Sweep::exhausts_operands() const {
  int bits = 0;
  for (const int operand : operation->operand_bits) bits += operand;
  return bits == index_bits;
}

SweepResult run(const Sweep& sweep, std::uint32_t shard) {
  return run(sweep, shard, {.first = 0, .count = sweep.inputs_of_shard()});
}

const std::vector<Sweep>& sweeps() {
#define FP16_SWEEP(function, pipe, ...) sweep_of<__VA_ARGS__>(#function, Pipe::pipe),
  static const std::vector<Sweep> all{FP16_SWEPT_INTRINSICS(FP16_SWEEP)};
#undef FP16_SWEEP
  return all;
}

const std::vector<TabulatedFunction>& tabulated_functions() {
#define FP16_TABULATED(function, pipe) {#function, Pipe::pipe},
  static const std::vector<TabulatedFunction> all{FP16_TABULATED_INTRINSICS(FP16_TABULATED)};
#undef FP16_TABULATED
  return all;
}

}  // namespace experiments::probes
