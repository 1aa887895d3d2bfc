#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "experiments/gpu/probes/sweep.h"
#include "experiments/gpu/probes/tensor_core.h"
#include "experiments/gpu/validate_gpu/operation_list.h"

namespace experiments::validate_gpu {
namespace {

bool has_kernel(const Operations& rows, std::string_view function) {
  return std::ranges::any_of(rows, [&](const Operation& row) {
    return std::ranges::any_of(row.subjects, [&](Subject subject) {
      return (subject == Subject::gpu || subject == Subject::gpu_packed) &&
             cuda_function(row, subject) == function;
    });
  });
}

/// "ldg" of __ldg and __ldg_half2, but make_half2 has no other form.
std::string name_without_marks(std::string_view function) {
  constexpr std::string_view mark = "_half2";
  const auto& sweeps = probes::sweeps();
  if (function.ends_with(mark)) {
    const std::string_view scalar = function.substr(0, function.size() - mark.size());
    if (std::ranges::find(sweeps, scalar, &probes::Sweep::function) != sweeps.end()) function = scalar;
  }
  while (function.starts_with('_')) function.remove_prefix(1);
  return std::string(function);
}

std::string_view family_of(std::string_view function) {
  return function.starts_with("operator")    ? "operators"
         : function.starts_with("atomicAdd") ? "atomic addition"
         : function == "hcmadd"              ? "complex multiply-add"
                                             : "moves and packing";
}

NumberType operand_of(const fp16::Operation& operation) {
  const int bits = operation.operand_bits[0];
  if (operation.name.starts_with("from_binary")) return {.bits = bits};
  return bits == 16 ? half_number : NumberType{NumberKind::unsigned_integer, bits};
}

/// Two halves in a word, and copies, of which every bit counts, are shown as words.
NumberType result_of(const fp16::Operation& operation) {
  const int bits = operation.result_bits;
  const bool is_number = (bits == 16 && operation.name != "copy") || operation.name == "to_binary32";
  return is_number ? NumberType{.bits = bits} : NumberType{NumberKind::unsigned_integer, bits};
}

}  // namespace

void append_device_functions(Operations& rows) {
  Operations added;
  for (const probes::Sweep& sweep : probes::sweeps()) {
    if (has_kernel(rows, sweep.function)) continue;
    const std::string name = name_without_marks(sweep.function);
    auto row = std::ranges::find(added, name, &Operation::name);
    if (row == added.end()) {
      row = added.insert(added.end(), {.name = name,
                                       .family = family_of(name),
                                       .domain = nullptr,
                                       .software = nullptr,
                                       .oracle = nullptr,
                                       .subjects = {},
                                       .operand = operand_of(*sweep.operation),
                                       .result = result_of(*sweep.operation)});
    }
    const bool is_packed = sweep.pipe != probes::Pipe::scalar;
    row->subjects.push_back(is_packed ? Subject::gpu_packed : Subject::gpu);
    row->device_functions[is_packed ? 1 : 0] = sweep.function;
    if (sweep.pipe == probes::Pipe::both) row->lane = LaneResult::all;
  }
  std::ranges::move(added, std::back_inserter(rows));
}

void append_tensor_core(Operations& rows) {
  for (const probes::TensorCoreInstruction& instruction : probes::tensor_core_instructions()) {
    for (const probes::InputFamily& family : probes::input_families())
      rows.push_back({.name = tensor_core_operation(instruction, family),
                      .family = "tensor core",
                      .domain = nullptr,
                      .software = nullptr,
                      .oracle = nullptr,
                      .subjects = {Subject::gpu}});
  }
}

std::string tensor_core_operation(const probes::TensorCoreInstruction& instruction,
                                  const probes::InputFamily& family) {
  const bool is_wide = instruction.accumulator == probes::AccumulatorFormat::binary32;
  std::string name = fmt::format("{}_{}_{}", instruction.name, is_wide ? "f32" : "f16", family.name);
  std::ranges::replace(name, ' ', '_');
  return name;
}

std::string cuda_function(const Operation& operation, Subject subject) {
  const std::string& name = operation.name;
  const std::string& listed = operation.device_functions[subject == Subject::gpu ? 0 : 1];
  if (!listed.empty()) return listed;
  if (operation.family == "functions" || operation.family == "rounding to integers")
    return subject == Subject::gpu ? name : "h2" + name.substr(1);
  if (subject == Subject::gpu) return "__" + name;
  if (name == "hdiv") return "__h2div";
  if (name == "half2float") return "__half22float2";
  if (name == "float2half_rn") return "__float22half2_rn";
  const std::size_t stem = std::min(name.find('_'), name.size());
  return fmt::format("__{}2{}", name.substr(0, stem), name.substr(stem));
}

}  // namespace experiments::validate_gpu
