#include <fmt/format.h>

#include <span>

#include "fp16/mma.h"
#include "tools/halflab/selftest/array_call.h"
#include "tools/halflab/selftest/groups.h"
#include "tools/halflab/selftest/products.h"

namespace halflab::selftest {
namespace {

using fp16::TensorCore;

/// Single steps, of all lengths up to the core's, between codes of any class, between halves of moderate size, and between
/// small ones, whose sums are subnormal or vanish as halves.
template <const fp16::Format& Accumulator>
std::uint64_t hash_of_steps(const TensorCore& core) {
  constexpr std::size_t count = 2'048;
  const OperandArrays<fp16::binary16> any(count);
  const OperandArrays<Accumulator> accumulators(count);
  std::vector<std::uint16_t> moderate, small;
  for (const double number : moderate_numbers(2 * count, 4)) {
    moderate.push_back(fp16::encode<fp16::binary16>(number).bits);
    small.push_back(fp16::encode<fp16::binary16>(number * 0x1p-13).bits);
  }
  const auto steps = static_cast<std::size_t>(core.products_per_step);
  Fnv1a hash;
  const auto add = [&](std::span<const std::uint16_t> a, std::span<const std::uint16_t> b,
                       fp16::Bits<Accumulator> c) {
    hash.add(fp16::mma_step<Accumulator>(core, a, b, c), Accumulator.width());
  };
  for (std::size_t i = 0; i + steps <= count; ++i) {
    const std::size_t length = 1 + i % steps;
    const auto part = [&](const std::vector<std::uint16_t>& codes, std::size_t first) {
      return std::span(codes).subspan(first, length);
    };
    const fp16::Bits<Accumulator> c = accumulators.a[i];
    add(part(any.a, i), part(any.b, i), c);
    add(part(moderate, i), part(moderate, count + i), c);
    add(part(moderate, i), part(moderate, count + i), fp16::encode<Accumulator>(1.0f / (1 + i % 64)).bits);
    add(part(small, i), part(small, count + i), 0);
  }
  return hash.value();
}

}  // namespace

std::vector<Row> tensor_core_rows() {
  std::vector<Row> rows;
  for (const TensorCore& core : fp16::tensor_cores) {
    rows.push_back(
        {fmt::format("{} binary32 steps", core.name), [&] { return hash_of_steps<fp16::binary32>(core); }});
    rows.push_back(
        {fmt::format("{} binary16 steps", core.name), [&] { return hash_of_steps<fp16::binary16>(core); }});
    for (const fp16::Format& accumulator : {fp16::binary32, fp16::binary16}) {
      const auto multiply = [&core, accumulator](const fp16::MatrixOperand& a, const fp16::MatrixOperand& b,
                                                 float* c) {
        gemm(a, b, c, b.columns, fp16::TensorCoreAccumulation{core, accumulator});
      };
      rows.push_back({fmt::format("{} {} products", core.name, name_of(accumulator)),
                      [multiply] { return hash_of_products<float>(multiply); }});
    }
  }
  return rows;
}

}  // namespace halflab::selftest
