#include "experiments/gpu/probes/tensor_core.h"

#include <algorithm>
#include <stdexcept>

#include "experiments/gpu/probes/tensor_core_inputs.h"
#include "experiments/gpu/probes/tensor_core_instructions.h"

namespace experiments::probes {

namespace {

inputs::DotShape shape_of(const TensorCoreInstruction& instruction) {
  return {.depth = instruction.depth, .accumulator = instruction.accumulator};
}

}  // namespace

std::string_view name_of(AccumulatorFormat format) {
  return format == AccumulatorFormat::binary32 ? "binary32" : "binary16";
}

const std::vector<TensorCoreInstruction>& tensor_core_instructions() {
#define FP16_BOTH_ACCUMULATORS(name, rows, columns, depth, threads, targets)    \
  {#name, AccumulatorFormat::binary32, rows, columns, depth, threads, targets}, \
      {#name, AccumulatorFormat::binary16, rows, columns, depth, threads, targets},
  static const std::vector<TensorCoreInstruction> all{FP16_TENSOR_CORE_INSTRUCTIONS(FP16_BOTH_ACCUMULATORS)};
#undef FP16_BOTH_ACCUMULATORS
  return all;
}

const std::vector<InputFamily>& input_families() {
  using enum DotFamily;
  static const std::vector<InputFamily> all{
      {open_questions, "open questions",
       "FP16 out: 0x8001 * 0x2c00 alone, the model +0, IEEE 754 -0; FP32 out: c = 2^-149 beside 0 * 77.25, "
       "the model c, MMA-Sim +0"},
      {random, "random", "a mixture of nine distributions, against the model"},
      {structure, "structure",
       "exponent gaps, signs, edge significands, positions and carries, against the model"},
      {specials, "specials", "every NaN and infinity in every slot, against the model"},
      {one_product, "one product", "c + a * b of all a and b and (binary16) all c, against the model"},
      {permutation, "permutation", "the products of a step in other orders"},
      {negation, "negation", "a and c negated"},
      {scaling, "scaling", "a and c times 2^-3 ... 2^3"},
      {position, "position", "the same dot product at every place of the tile"},
      {zero_padding, "zero padding", "0 * 0 replaced by zero times a number"},
      {repetition, "repetition", "the same once more"}};
  return all;
}

const std::vector<OpenQuestion>& open_questions() {
  static const std::vector<OpenQuestion> all{{.accumulator = AccumulatorFormat::binary16,
                                              .name = "the sign of a negative sum that rounds to zero",
                                              .model_answer = 0x0000,
                                              .other = "IEEE 754's answer",
                                              .other_answer = 0x8000},
                                             {.accumulator = AccumulatorFormat::binary32,
                                              .name = "whether a zero product truncates a tiny c away",
                                              .model_answer = 0x00000001,
                                              .other = "MMA-Sim's answer",
                                              .other_answer = 0x00000000}};
  return all;
}

std::uint64_t InputFamily::inputs(const TensorCoreInstruction& instruction) const {
  switch (family) {
    case DotFamily::open_questions:
      return 1;
    case DotFamily::random:
      return 10 * shard_inputs();
    case DotFamily::structure:
      return inputs::structure_inputs(shape_of(instruction));
    case DotFamily::specials:
      return inputs::special_inputs(shape_of(instruction));
    case DotFamily::one_product:
      return inputs::one_product_inputs;
    case DotFamily::position:
      return std::uint64_t{1} << 22;
    default:
      return std::uint64_t{1} << 28;
  }
}

std::uint64_t InputFamily::shard_inputs() const {
  return std::uint64_t{1} << (family == DotFamily::one_product ? 32 : 30);
}

std::uint32_t InputFamily::shards(const TensorCoreInstruction& instruction) const {
  return static_cast<std::uint32_t>((inputs(instruction) + shard_inputs() - 1) / shard_inputs());
}

DotRange shard_range(const TensorCoreInstruction& instruction, const InputFamily& family,
                     std::uint32_t shard) {
  const std::uint32_t shards = family.shards(instruction);
  if (shard >= shards)
    throw std::invalid_argument("shard of '" + std::string(family.name) + "': " + std::to_string(shard) +
                                ", there are " + std::to_string(shards));
  const std::uint64_t first = shard * family.shard_inputs();
  return {.first = first, .count = std::min(family.shard_inputs(), family.inputs(instruction) - first)};
}

DotProduct dot_product(const TensorCoreInstruction& instruction, DotFamily family, std::uint64_t number) {
  return inputs::dot_product(family, number, shape_of(instruction));
}

std::uint32_t model_result(const TensorCore& core, const TensorCoreInstruction& instruction,
                           const DotProduct& product) {
  if (instruction.accumulator == AccumulatorFormat::binary32)
    return inputs::model_dot<binary32>(core, instruction.depth, product);
  return inputs::model_dot<binary16>(core, instruction.depth, product);
}

}  // namespace experiments::probes
