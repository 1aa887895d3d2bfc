#include "experiments/gpu/validate_gpu/operations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "experiments/gpu/probes/sweep.h"
#include "experiments/gpu/probes/tensor_core.h"
#include "experiments/gpu/validate_gpu/operation_list.h"
#include "fp16/names.h"

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
                      .subjects = {Subject::gpu},
                      .is_held_to_itself = !family.needs_model()});
  }
}

/// A family as the verdict has it.
struct Family {
  std::string name;
  std::vector<std::string> operations;
};

const std::vector<Family>& families() {
  static const std::vector<Family> all = [] {
    std::vector<Family> found;
    const auto put = [&](std::string_view family, std::string_view operation) {
      auto place = std::ranges::find(found, family, &Family::name);
      if (place == found.end()) place = found.insert(place, {.name = std::string(family), .operations = {}});
      place->operations.emplace_back(operation);
    };
    for (const Operation& operation : operations()) put(operation.family, operation.name);
    put("tensor core", recorded_steps);
    return found;
  }();
  return all;
}

/// The operations that an operation's name, a family's or "all" stands for; none for another name.
std::vector<std::string> operations_called(std::string_view name) {
  std::vector<std::string> names;
  for (const Family& family : families()) {
    for (const std::string& operation : family.operations) {
      if (name == "all" || name == family.name || name == operation) names.push_back(operation);
    }
  }
  return names;
}

/// What stands before the comma; a family's name may hold one itself.
std::string first_name(std::string_view list) {
  for (const Family& family : families()) {
    if (list == family.name || list.starts_with(family.name + ',')) return family.name;
  }
  return std::string(list.substr(0, list.find(',')));
}

std::vector<Variant> listed_operations() {
  std::vector<Variant> listed;
  for (const Family& family : families()) {
    for (const std::string& operation : family.operations)
      listed.push_back({.name = operation, .kind = family.name});
  }
  return listed;
}

[[noreturn]] void refuse_name(const std::string& name) {
  std::vector<std::string> known = operations_called("all");
  for (const Family& family : families()) known.push_back(family.name);
  const auto nearest = names::nearest_name(name, known);
  throw std::invalid_argument(
      fmt::format("unknown operation '{}'; {}allowed: all, families, or names of --list operations", name,
                  nearest ? "did you mean '" + *nearest + "'? " : ""));
}

}  // namespace

std::string_view name_of(Subject subject) {
  switch (subject) {
    case Subject::software_half:
      return "software half";
    case Subject::cuda_header:
      return "cuda_fp16.h";
    case Subject::cuda_header_packed:
      return "cuda_fp16.h packed";
    case Subject::gpu:
      return "GPU";
    case Subject::gpu_packed:
      return "GPU packed";
  }
  return "unknown";
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

const std::vector<Operation>& operations() {
  static const Operations rows = [] {
    Operations all;
    append_arithmetic(all);
    append_conversions(all);
    append_functions(all);
    append_device_functions(all);
    append_tensor_core(all);
    return all;
  }();
  return rows;
}

std::string families_text() {
  std::string text;
  for (const Family& family : families()) text += (text.empty() ? "" : ", ") + family.name;
  return text;
}

Families operation_family() {
  static constexpr experiments::Family family{"operations", listed_operations, nullptr};
  return std::span(&family, 1);
}

std::vector<std::string> chosen_names(std::string_view list) {
  std::vector<std::string> chosen;
  while (true) {
    const std::string name = first_name(list);
    const std::vector<std::string> named = operations_called(name);
    if (named.empty()) refuse_name(name);
    chosen.insert(chosen.end(), named.begin(), named.end());
    if (name.size() == list.size()) return chosen;
    list.remove_prefix(name.size() + 1);
  }
}

}  // namespace experiments::validate_gpu
