#include "sim/arithmetic.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

#include "fp16/half.h"
#include "sim/random.h"

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

TEST_CASE("add_term: a sum in binary16 is the sum of halves at every step, in binary32 that of floats") {
  const sim::RandomStream random(1, "terms");
  float in_half = 0, in_float = 0;
  double in_double = 0, in_double_whatever = 0;
  fp16::half halves(0.0f);
  float floats = 0;
  for (int i = 0; i < 5000; ++i) {
    const fp16::half term(random.normal(i) + 0.5f);
    sim::add_term(in_half, term, fp16::binary16);
    sim::add_term(in_float, term, fp16::binary32);
    sim::add_term(in_double, double{float(term)}, fp16::binary64);
    sim::add_term(in_double_whatever, double{float(term)}, fp16::binary16);
    halves += term;
    floats += float(term);
    REQUIRE(in_half == float(halves));
    REQUIRE(in_float == floats);
  }
  CHECK(in_half != in_float);
  CHECK(in_double == doctest::Approx(in_float).epsilon(1e-6));
  CHECK(in_double_whatever == in_double);
}
