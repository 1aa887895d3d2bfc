#pragma once
/// The operations of cuda_fp16.h, what each is in the software half and in the double-precision oracle, and
/// where it exists.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/gpu/validate_gpu/numbers.h"
#include "experiments/gpu/validate_gpu/operands.h"

namespace fp16::cuda {
struct TensorCoreInstruction;
struct InputFamily;
}  // namespace fp16::cuda

namespace experiments::validate_gpu {

/// Who computes what is checked.
enum class Subject : std::uint8_t {
  software_half,       ///< fp16/, against the double-precision oracle
  cuda_header,         ///< the host functions of cuda_fp16.h, against the software half, here and below
  cuda_header_packed,  ///< those of two lanes
  gpu,
  gpu_packed
};

std::string_view name_of(Subject subject);

/// What a lane of the packed form holds in the place of the scalar form's result.
enum class LaneResult : std::uint8_t {
  code,  ///< the same
  one,   ///< 1.0 or 0.0 for a truth
  mask,  ///< 0xFFFF or 0
  all    ///< not two results: whether both lanes are true
};

struct Operation {
  std::string name;  ///< CUDA's, without the underscores in front and the digit 2 of packed forms
  std::string_view family;
  const Domain* domain;  ///< null where only a device goes through it
  Function software;     ///< null where fp16/ has no such function
  Function oracle;       ///< null where double arithmetic does not decide
  std::vector<Subject> subjects;
  LaneResult lane = LaneResult::code;
  NumberType operand = {}, result = {};
  /// Whether NVIDIA's header promises the bits of NaN results; PTX leaves those of most instructions open.
  bool has_canonical_nans = false;
  /// Of cuda_fp16.h, scalar and packed, where the name does not tell; operators are called in words.
  std::array<std::string, 2> device_functions = {};
};

/// What cuda_fp16.h calls it on a GPU: "__hadd2_sat" for hadd_sat, packed.
std::string cuda_function(const Operation& operation, Subject subject);

/// The name of the operation that holds an instruction to the model, or to itself, on a family of inputs.
std::string tensor_core_operation(const probes::TensorCoreInstruction& instruction,
                                  const probes::InputFamily& family);

const std::vector<Operation>& operations();

}  // namespace experiments::validate_gpu
