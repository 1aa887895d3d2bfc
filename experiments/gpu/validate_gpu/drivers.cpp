#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "experiments/gpu/probes/fma_sweep.h"
#include "experiments/gpu/probes/sweep.h"
#include "experiments/gpu/validate_gpu/driver.h"
#include "experiments/gpu/validate_gpu/functions.h"
#include "experiments/gpu/validate_gpu/rows.h"
#include "experiments/gpu/validate_gpu/swept_answers.h"
#include "experiments/gpu/validate_gpu/tensor_core_drivers.h"

namespace experiments::validate_gpu {
namespace {

namespace cuda = fp16::cuda;

const Domain& listed_domain(const probes::Sweep& sweep) {
  if (sweep.index_bits == 16) return device_codes;
  if (sweep.index_bits == 48) return device_triples;
  return sweep.operation->arity == 2 ? device_pairs : device_words;
}

Domain domain_of(const probes::Sweep& sweep) {
  Domain domain = listed_domain(sweep);
  if (!sweep.exhausts_operands()) {
    domain.is_complete = false;
    domain.meaning = sweep.shards() == 1 ? device_points.meaning : "2^48 triples of pairs of codes";
  }
  domain.operand_count = sweep.operation->arity;
  domain.shard_count = sweep.shards();
  domain.shard_size = sweep.inputs_of_shard();
  domain.inputs = sweep.inputs();
  return domain;
}

ExampleTypes types_of(const Operation& operation) {
  return {.operand = operation.operand, .result = operation.result, .operand_count = 0};
}

const probes::Sweep* sweep_called(std::string_view function) {
  const auto found = std::ranges::find(probes::sweeps(), function, &probes::Sweep::function);
  return found == probes::sweeps().end() ? nullptr : &*found;
}

decltype(Driver::answers) single_answers(const probes::Sweep& sweep) {
  if (!sweep.exhausts_operands()) return {};
  return [&sweep](std::size_t, const std::vector<Operands>& operands) { return answers_at(sweep, operands); };
}

Driver sweep_driver(const probes::Sweep& sweep, const Operation& operation, Subject subject) {
  return {.functions = {std::string(sweep.function)},
          .rows = {row_id(operation, subject)},
          .domain = domain_of(sweep),
          .cost = sweep.shards() > 1 ? 16u : 1u,  // a complex multiply-add
          .run = [&sweep, types = types_of(operation)](std::uint32_t shard) -> DeviceAnswer {
            const probes::SweepResult result = probes::run(sweep, shard);
            return {.time_s = 1e-3 * result.milliseconds, .rows = {row_answer(sweep, types, shard, result)}};
          },
          .answers = single_answers(sweep)};
}

/// All at once; where the software half is not the reference either, the first row has a mismatch.
DeviceAnswer fused_answer(std::uint32_t shard) {
  const probes::FmaSweepResult result = probes::run_fma(static_cast<std::uint16_t>(shard));
  DeviceAnswer answer{.time_s = 1e-3 * result.functions.front().milliseconds, .rows = {}};
  for (std::size_t i = 0; i < result.functions.size(); ++i) {
    const probes::Sweep& sweep = *sweep_called(probes::fma_functions[i]);
    answer.rows.push_back(row_answer(sweep, {}, shard, result.functions[i]));
  }
  RowAnswer& first = answer.rows.front();
  first.result.mismatches += result.software.mismatches + result.software.nan_mismatches;
  for (Example& example : examples_of(*sweep_called("__hfma"), {}, result.software)) {
    example.kind = "software half";
    first.examples.push_back(std::move(example));
  }
  return answer;
}

Driver fused_driver() {
  Driver driver{.functions = {probes::fma_functions.begin(), probes::fma_functions.end()},
                .rows = {},
                .domain = device_triples,
                .run = fused_answer,
                .answers = [](std::size_t row, const std::vector<Operands>& operands) {
                  return answers_at(*sweep_called(probes::fma_functions[row]), operands);
                }};
  for (const std::string& function : driver.functions) {
    for (const Operation& operation : operations()) {
      for (const Subject subject : {Subject::gpu, Subject::gpu_packed}) {
        if (operation.family == "fused multiply-add" && cuda_function(operation, subject) == function)
          driver.rows.push_back(row_id(operation, subject));
      }
    }
  }
  return driver;
}

/// Where there is a sweep of the same function, too, other answers of that are a mismatch.
DeviceAnswer answer_of(const probes::TabulatedFunction& tabulated, const ExactFunction& function,
                       const probes::Sweep* sweep) {
  RowAnswer row = judge(function, probes::tabulate(tabulated));
  double time_s = 0;
  if (sweep != nullptr) {
    const probes::SweepResult result = probes::run(*sweep, 0);
    time_s = 1e-3 * result.milliseconds;
    if (result.digest != row.result.digest) {
      ++row.result.mismatches;
      row.examples.insert(row.examples.begin(), repetition_example(result.digest, row.result.digest));
    }
  }
  return {.time_s = time_s, .rows = {std::move(row)}};
}

Driver table_driver(const probes::TabulatedFunction& tabulated, const Operation& operation, Subject subject) {
  const auto function = std::ranges::find(exact_functions(), operation.name, &ExactFunction::operation);
  const probes::Sweep* const sweep = sweep_called(tabulated.function);
  return {
      .functions = {std::string(tabulated.function)},
      .rows = {row_id(operation, subject)},
      .domain = device_codes,
      .run = [&tabulated, function, sweep](std::uint32_t) { return answer_of(tabulated, *function, sweep); },
      .answers =
          [&tabulated](std::size_t, const std::vector<Operands>& operands) {
            const FunctionTable table = probes::tabulate(tabulated).front();
            std::vector<std::uint64_t> answers;
            for (const Operands& each : operands) answers.push_back(table[each.a]);
            return answers;
          }};
}

std::optional<Driver> driver_of(const Operation& operation, Subject subject) {
  const std::string name = cuda_function(operation, subject);
  if (std::ranges::find(probes::fma_functions, name) != probes::fma_functions.end()) return std::nullopt;
  const auto& tables = probes::tabulated_functions();
  const auto table = std::ranges::find(tables, name, &probes::TabulatedFunction::function);
  if (table != tables.end()) return table_driver(*table, operation, subject);
  const probes::Sweep* const sweep = sweep_called(name);
  if (sweep == nullptr) return std::nullopt;
  return sweep_driver(*sweep, operation, subject);
}

}  // namespace

const std::vector<Driver>& device_drivers() {
  static const std::vector<Driver> drivers = [] {
    std::vector<Driver> all;
    for (const Operation& operation : operations()) {
      for (const Subject subject : operation.subjects) {
        if (subject != Subject::gpu && subject != Subject::gpu_packed) continue;
        if (auto driver = driver_of(operation, subject)) all.push_back(std::move(*driver));
      }
    }
    all.push_back(fused_driver());
    append_tensor_core_drivers(all);
    return all;
  }();
  return drivers;
}

}  // namespace experiments::validate_gpu
