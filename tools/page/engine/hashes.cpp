#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <variant>

#include "fp16/math.h"
#include "fp16/operations.h"
#include "fp16/philox.h"
#include "tools/halflab/selftest/fnv1a.h"
#include "tools/page/engine/answer.h"
#include "tools/page/engine/engine.h"

namespace halflab::page {
namespace {

/// The operations of numbers, then the correctly rounded functions.
std::size_t operation_count() {
  return fp16::operations().size() + fp16::math::unary_functions().size();
}

const fp16::math::UnaryFunction* function_at(std::size_t index) {
  const std::size_t before = fp16::operations().size();
  return index < before ? nullptr : fp16::math::unary_functions()[index - before];
}

/// The operands of a sample, of as many bits as the operation takes.
fp16::OperandCodes operands_of(const fp16::Operation& operation, const fp16::Philox& random,
                               std::uint64_t sample) {
  if (operation.arity == 1 && operation.operand_bits[0] <= 16) return {sample & 0xffff};
  fp16::OperandCodes codes{};
  const fp16::Philox::Block first = random.block(2 * sample), second = random.block(2 * sample + 1);
  for (std::size_t k = 0; k < static_cast<std::size_t>(operation.arity); ++k) {
    const std::uint64_t drawn = first[k] | std::uint64_t{second[k]} << 32;
    const int bits = operation.operand_bits[k];
    codes[k] = bits == 64 ? drawn : drawn & ((std::uint64_t{1} << bits) - 1);
  }
  return codes;
}

std::uint64_t hash(std::size_t index, std::uint64_t first, std::uint64_t count) {
  if (index >= operation_count())
    throw std::invalid_argument("operation " + std::to_string(index) + " is not allowed; allowed: below " +
                                std::to_string(operation_count()));
  Fnv1a results;
  if (const fp16::math::UnaryFunction* function = function_at(index)) {
    for (std::uint64_t i = first; i < first + count; ++i)
      results.add((*function)(fp16::half::from_bits(static_cast<std::uint16_t>(i))).bits(), 16);
    return results.value();
  }
  const fp16::Operation& operation = fp16::operations()[index];
  const fp16::Philox random{.stream = index};
  for (std::uint64_t i = first; i < first + count; ++i)
    results.add(operation.apply(operands_of(operation, random, i)), operation.result_bits);
  return results.value();
}

nlohmann::ordered_json list() {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const fp16::Operation& operation : fp16::operations())
    rows.push_back({{"name", operation.name},
                    {"operands", operation.arity},
                    {"is_countable", operation.arity == 1 && operation.operand_bits[0] <= 16}});
  for (const fp16::math::UnaryFunction* function : fp16::math::unary_functions())
    rows.push_back({{"name", function->name()}, {"operands", 1}, {"is_countable", true}});
  return rows;
}

}  // namespace
}  // namespace halflab::page

const char* engine_operations() {
  return halflab::page::answer(halflab::page::list());
}

std::uint64_t engine_hash(std::size_t index, std::uint64_t first, std::uint64_t count) {
  return halflab::page::hash(index, first, count);
}
