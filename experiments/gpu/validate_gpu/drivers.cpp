#include "experiments/gpu/validate_gpu/drivers.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "experiments/gpu/probes/fma_sweep.h"
#include "experiments/gpu/validate_gpu/functions.h"
#include "experiments/gpu/validate_gpu/rows.h"
#include "experiments/gpu/validate_gpu/tensor_cores.h"

namespace experiments::validate_gpu {
namespace {

Operands operands_of(const fp16::OperandCodes& codes) {
  return {.a = codes[0], .b = codes[1], .c = codes[2]};
}

Example example_of(const probes::Sweep& sweep, ExampleTypes types, const probes::Counterexample& found) {
  types.operand_count = sweep.operation->arity;
  // A packed predicate answers with two numbers or two masks.
  if (types.result.bits == 1 && sweep.pipe == probes::Pipe::packed) types.result = half_number;
  if (sweep.pipe == probes::Pipe::mask) types.result = {NumberKind::unsigned_integer, 16};
  const std::size_t lanes = sweep.pipe == probes::Pipe::scalar ? 1 : 2;
  const std::size_t answers = sweep.pipe == probes::Pipe::both ? 1 : lanes;
  bool differs_in_value = false;
  for (std::size_t i = 0; i < answers; ++i)
    differs_in_value = differs_in_value ||
                       (found.expected[i] != found.found[i] &&
                        !(is_nan(types.result, found.expected[i]) && is_nan(types.result, found.found[i])));
  Example example{.kind = differs_in_value ? "value" : "NaN", .bits = {}, .values = {}};
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    append_lane(example, types,
                {.operands = operands_of(found.operands[lane]),
                 .result = lane < answers ? std::optional(found.found[lane]) : std::nullopt,
                 .expected = lane < answers ? std::optional(found.expected[lane]) : std::nullopt});
  }
  return example;
}

/// The calls that the sweep kept. The number of operands is that of the sweep.
std::vector<Example> examples_of(const probes::Sweep& sweep, const ExampleTypes& types,
                                 const probes::SweepResult& result) {
  std::vector<Example> examples;
  for (const probes::Counterexample& found : result.counterexamples)
    examples.push_back(example_of(sweep, types, found));
  return examples;
}

bool is_value(const Example& example) {
  return example.kind.starts_with("value");
}

RowAnswer plain_answer(const probes::Sweep& sweep, const ExampleTypes& types,
                       const probes::SweepResult& result) {
  return {.result = {.digest = result.digest,
                     .mismatches = result.mismatches,
                     .documented = 0,
                     .other_nans = result.nan_mismatches,
                     .misrounded = 0},
          .examples = examples_of(sweep, types, result)};
}

/// The numbers of the inputs with these operands.
std::vector<std::uint64_t> inputs_at(const probes::Sweep& sweep, const std::vector<Operands>& all) {
  std::vector<std::uint64_t> inputs;
  for (const Operands& operands : all) {
    const fp16::OperandCodes codes{operands.a, operands.b, operands.c};
    std::uint64_t input = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(sweep.operation->arity); ++i)
      input = input << sweep.operation->operand_bits[i] | codes[i];
    inputs.push_back(input);
  }
  return inputs;
}

/// With examples of other values, if there are any.
RowAnswer row_answer(const probes::Sweep& sweep, const ExampleTypes& types, std::uint32_t shard,
                     const probes::SweepResult& result) {
  RowAnswer row = plain_answer(sweep, types, result);
  prepend_value_examples(row, {.first = 0, .count = sweep.inputs_of_shard()}, [&](probes::Range part) {
    return plain_answer(sweep, types, probes::run(sweep, shard, part));
  });
  return row;
}

/// What a function answers, of a packed one in the first lane. The sweep must exhaust its operands.
std::vector<std::uint64_t> answers_at(const probes::Sweep& sweep, const std::vector<Operands>& operands) {
  return probes::answers_at(sweep, inputs_at(sweep, operands));
}

const Domain& listed_domain(const probes::Sweep& sweep) {
  if (sweep.index_bits == 16) return domain_called("device_codes");
  if (sweep.index_bits == 48) return domain_called("device_triples");
  return sweep.operation->arity == 2 ? domain_called("device_pairs") : domain_called("device_words");
}

Domain domain_of(const probes::Sweep& sweep) {
  Domain domain = listed_domain(sweep);
  if (!sweep.exhausts_operands()) {
    domain.is_complete = false;
    domain.meaning =
        sweep.shards() == 1 ? domain_called("device_points").meaning : "2^48 triples of pairs of codes";
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
                .domain = domain_called("device_triples"),
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
      .domain = domain_called("device_codes"),
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

void prepend_value_examples(RowAnswer& row, probes::Range range,
                            const std::function<RowAnswer(probes::Range)>& ask) {
  if (row.result.mismatches == 0 || std::ranges::any_of(row.examples, is_value)) return;
  std::vector<Example> more;
  while (range.count > 1 && std::ranges::none_of(more, is_value)) {
    const std::uint64_t lower = range.count / 2;
    RowAnswer part = ask({.first = range.first, .count = lower});
    if (part.result.mismatches != 0) {
      range.count = lower;
    } else {
      range = {.first = range.first + lower, .count = range.count - lower};
      part = ask(range);
    }
    more = std::move(part.examples);
  }
  std::erase_if(more, [](const Example& example) { return !is_value(example); });
  row.examples.insert(row.examples.begin(), more.begin(), more.end());
}

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
