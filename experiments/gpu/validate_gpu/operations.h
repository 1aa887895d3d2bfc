#pragma once
/// The operations of cuda_fp16.h, what each is in the software half, in the double-precision oracle and in NVIDIA's
/// header, where it exists, and how it is chosen by name.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/families.h"
#include "experiments/validation/domains.h"
#include "experiments/validation/numbers.h"

namespace experiments::probes {
struct TensorCoreInstruction;
struct InputFamily;
}  // namespace experiments::probes

namespace experiments::validate_gpu {

using namespace validation;

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
  bool is_held_to_itself = false;  ///< a tensor core's result for derived operands to that for the first ones
  /// Its names in cuda_fp16.h, scalar and packed, where `name` does not tell; operators are called in words.
  std::array<std::string, 2> device_functions = {};
};

/// What cuda_fp16.h calls it on a GPU: "__hadd2_sat" for hadd_sat, packed.
std::string cuda_function(const Operation& operation, Subject subject);

/// The name of the operation that holds an instruction to the model, or to itself, on a family of inputs.
std::string tensor_core_operation(const probes::TensorCoreInstruction& instruction,
                                  const probes::InputFamily& family);

const std::vector<Operation>& operations();

/// The host functions of an operation in NVIDIA's cuda_fp16.h, whose global names stay in one source file.
struct HeaderFunctions {
  std::string_view operation;  ///< as operations() calls it
  Function scalar;             ///< null where there is none
  /// Two lanes: the operands of the first in the lower 16 bits of a, b and c, of the second in the next 16,
  /// and so in the result. Null where there is none.
  Function packed;
};

/// None where the header was not found when the program was built.
std::span<const HeaderFunctions> cuda_header_functions();

/// "CUDA 13.0"; empty where the header was not found.
std::string_view cuda_header_version();

/// The name of what no row stands for: recorded tensor-core steps.
inline constexpr std::string_view recorded_steps = "recorded_steps";

/// "arithmetic, fused multiply-add, ...": the families as the verdict has them.
std::string families_text();

/// For --list: all operations, of which each has its family for kind.
Families operation_family();

/// From a list, separated by commas, of operations, families as the verdict has them, or "all". Throws
/// std::invalid_argument, naming the nearest one, for a name that is none.
std::vector<std::string> chosen_names(std::string_view list);

}  // namespace experiments::validate_gpu
