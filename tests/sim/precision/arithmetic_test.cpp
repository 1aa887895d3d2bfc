#include "sim/precision/arithmetic.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

#include "fp16/half.h"
#include "sim/tensor/random.h"

TEST_CASE("accumulations: every name is found again, chains first, then the tensor cores") {
  const std::vector<std::string> names = sim::product_accumulation_names();
  CHECK(names == std::vector<std::string>{"fp32", "fp16_fma", "fp16_mul_add", "volta_fp32", "volta_fp16",
                                          "turing_fp32", "turing_fp16", "ampere_fp32", "ampere_fp16",
                                          "ada_fp32", "ada_fp16", "hopper_fp32", "hopper_fp16",
                                          "blackwell_fp32", "blackwell_fp16"});
  for (const std::string& name : names) {
    const sim::ProductAccumulation products = sim::find_product_accumulation(name);
    INFO(name);
    CHECK(sim::name_of(products) == name);
    CHECK(products.ends_in_binary16() == (name.find("fp16") != std::string::npos));
    const std::size_t underscore = name.find('_');
    const bool is_chain = name.starts_with("fp");
    CHECK(products.tensor_core.has_value() == !is_chain);
    if (!is_chain) CHECK(products.tensor_core->core.name == name.substr(0, underscore));
  }
  CHECK(sim::name_of({.chain = fp16::Accumulation::fp64_fma_chain}) == "fp64");
  CHECK_THROWS_WITH_AS(sim::find_product_accumulation("hoper_fp32"),
                       doctest::Contains("did you mean 'hopper_fp32'?"), std::invalid_argument);
}

TEST_CASE("accumulations: a twin computes in its own format alone") {
  const sim::Arithmetic wide = sim::uniform_arithmetic(fp16::binary64, 2);
  CHECK(sim::name_of(wide.products) == "fp64");
  CHECK(wide.reductions == fp16::binary64);
  CHECK(wide.threads == 2);
  const sim::Arithmetic single = sim::uniform_arithmetic(fp16::binary32, 1);
  CHECK(sim::name_of(single.products) == "fp32");
  CHECK(single.reductions == fp16::binary32);
}
