#include "experiments/gpu/validate_gpu/swept_answers.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace experiments::validate_gpu {
namespace {

namespace cuda = fp16::cuda;

Operands operands_of(const fp16::OperandCodes& codes) {
  return {.a = codes[0], .b = codes[1], .c = codes[2]};
}

Example example_of(const probes::Sweep& sweep, ExampleTypes types, const probes::Counterexample& found) {
  types.operand_count = sweep.operation->arity;
  // Of a predicate's two answers each is a number or a mask.
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

}  // namespace

std::vector<Example> examples_of(const probes::Sweep& sweep, const ExampleTypes& types,
                                 const probes::SweepResult& result) {
  std::vector<Example> examples;
  for (const probes::Counterexample& found : result.counterexamples)
    examples.push_back(example_of(sweep, types, found));
  return examples;
}

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

RowAnswer row_answer(const probes::Sweep& sweep, const ExampleTypes& types, std::uint32_t shard,
                     const probes::SweepResult& result) {
  RowAnswer row = plain_answer(sweep, types, result);
  prepend_value_examples(row, {.first = 0, .count = sweep.inputs_of_shard()}, [&](probes::Range part) {
    return plain_answer(sweep, types, probes::run(sweep, shard, part));
  });
  return row;
}

std::vector<std::uint64_t> answers_at(const probes::Sweep& sweep, const std::vector<Operands>& operands) {
  return probes::answers_at(sweep, inputs_at(sweep, operands));
}

}  // namespace experiments::validate_gpu
