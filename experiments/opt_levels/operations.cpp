#include "experiments/opt_levels/operations.h"

#include <algorithm>
#include <map>

#include "fp16/formats.h"
#include "sim/data/dataset.h"
#include "sim/ops/conv2d.h"
#include "sim/ops/linear.h"
#include "sim/trainer/model_state.h"

namespace experiments::opt_levels {
namespace {

bool multiplies_narrow_operands(std::string_view operation, const sim::PrecisionPolicy& policy) {
  return policy.operands.narrows() && (operation == sim::linear.name || operation == sim::conv2d.name);
}

int bits_of(const sim::OperandFormat& operand, fp16::Format stored) {
  switch (operand.kind) {
    case sim::OperandFormat::Kind::per_tensor:
      return operand.element.width();
    case sim::OperandFormat::Kind::per_block:
      return operand.block->element.width();
    case sim::OperandFormat::Kind::as_stored:
      break;
  }
  return stored.width();
}

/// Without what is counted.
OperationUse use_of(sim::ValueName name, const sim::Tensor& value, const sim::PrecisionPolicy& policy) {
  const bool narrow = multiplies_narrow_operands(name.operation, policy);
  const sim::OperandFormat operands = narrow ? policy.operands.activations : sim::OperandFormat{};
  return {.operation = std::string(name.operation),
          .format = value.format(),
          .operands = sim::name_of(operands),
          .operand_bits = bits_of(operands, value.format())};
}

}  // namespace

std::vector<OperationUse> operation_uses(const TrainingSetup& setup, const Recipe& recipe,
                                         std::uint64_t seed) {
  const auto batch = static_cast<std::size_t>(setup.budget().batch);
  const sim::ModelState state = sim::ModelState::initial(setup.model(), seed);
  const sim::RecordedStep step =
      sim::record_step(setup.model(), state, sim::BatchSampler(setup.dataset(), seed, batch).batch(0),
                       recipe.policy, {.seed = seed});
  std::map<std::size_t, std::string> gradient_formats;
  step.tape.backward(step.forward.loss, {.observe = [&](sim::Variable variable, const sim::Tensor& gradient) {
                       gradient_formats[variable.index] = fp16::name_of(gradient.format());
                     }});
  std::vector<OperationUse> uses;
  for (std::size_t index = 0; index <= step.forward.loss.index; ++index) {
    const sim::Tensor& value = step.tape.value({index});
    OperationUse use = use_of(step.tape.name_of({index}), value, recipe.policy);
    if (const auto found = gradient_formats.find(index); found != gradient_formats.end())
      use.gradient_format = found->second;
    auto row = std::ranges::find_if(uses, [&](const OperationUse& other) {
      return other.operation == use.operation && other.format == use.format &&
             other.gradient_format == use.gradient_format;
    });
    if (row == uses.end()) row = uses.insert(uses.end(), use);
    ++row->calls;
    row->values += value.size();
    row->bytes += value.size_bytes();
  }
  return uses;
}

}  // namespace experiments::opt_levels
