#include "sim/precision/arithmetic.h"

#include <array>

#include "fp16/names.h"

namespace sim {
namespace {

struct NamedProducts {
  std::string name;
  ProductAccumulation products;
};

const std::vector<NamedProducts>& rows() {
  static const std::vector<NamedProducts> all = [] {
    std::vector<NamedProducts> named{
        {"fp32", {.chain = fp16::Accumulation::fp32_fma_chain}},
        {"fp16_fma", {.chain = fp16::Accumulation::fp16_fma_chain}},
        {"fp16_mul_add", {.chain = fp16::Accumulation::fp16_mul_add_chain}},
    };
    for (const fp16::TensorCore& core : fp16::tensor_cores) {
      for (const auto& [suffix, accumulator] :
           {std::pair{"_fp32", fp16::binary32}, std::pair{"_fp16", fp16::binary16}}) {
        named.push_back({std::string(core.name) + suffix,
                         {.tensor_core = fp16::TensorCoreAccumulation{core, accumulator}}});
      }
    }
    return named;
  }();
  return all;
}

}  // namespace

bool ProductAccumulation::ends_in_binary16() const {
  if (tensor_core) return tensor_core->accumulator == fp16::binary16;
  return chain == fp16::Accumulation::fp16_fma_chain || chain == fp16::Accumulation::fp16_mul_add_chain;
}

std::vector<std::string> product_accumulation_names() {
  return names::names_of(rows());
}

ProductAccumulation find_product_accumulation(std::string_view name) {
  return names::find_by_name(rows(), "accumulation", name).products;
}

std::string name_of(const ProductAccumulation& products) {
  if (products.chain == fp16::Accumulation::fp64_fma_chain) return "fp64";
  for (const NamedProducts& row : rows()) {
    const auto &mine = products.tensor_core, &theirs = row.products.tensor_core;
    if (mine.has_value() != theirs.has_value()) continue;
    if (mine ? mine->core.name == theirs->core.name && mine->accumulator == theirs->accumulator
             : products.chain == row.products.chain) {
      return row.name;
    }
  }
  return "custom";
}

Arithmetic uniform_arithmetic(fp16::Format format, int threads) {
  const bool binary64 = format == fp16::binary64;
  return {.products = {.chain = binary64 ? fp16::Accumulation::fp64_fma_chain
                                         : fp16::Accumulation::fp32_fma_chain},
          .reductions = format,
          .threads = threads};
}

}  // namespace sim
