/// Answers of functions and what becomes of NaNs, judged from tables.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/gpu/probes/sweep.h"
#include "experiments/gpu/validate_gpu/functions.h"
#include "experiments/gpu/validate_gpu/nan_census.h"
#include "experiments/gpu/validate_gpu/rows.h"
#include "experiments/validation/double_oracle.h"
#include "tests/experiments/gpu/validate_gpu_rows.h"

namespace {

namespace probes = experiments::probes;
using namespace experiments::validate_gpu;
using test::row_index;

const ExactFunction& function_called(std::string_view name) {
  const auto found = std::ranges::find(exact_functions(), name, &ExactFunction::operation);
  REQUIRE(found != exact_functions().end());
  return *found;
}

FunctionTable rounded_table(const ExactFunction& function) {
  FunctionTable table(65536);
  for (std::uint32_t code = 0; code < 65536; ++code)
    table[code] = static_cast<std::uint16_t>(function.rounded({.a = code}));
  return table;
}

}  // namespace

TEST_CASE("validate_gpu: errors in ulp are those of the exact value") {
  using fp16::detail::DoubleDouble;
  CHECK(error_ulp(DoubleDouble(1.0), 0x3C01) == 1.0);
  CHECK(error_ulp(DoubleDouble(1.0), 0x3BFF) == -0.5);  // the unit is that of the exact value's binade
  CHECK(error_ulp(DoubleDouble(0x1p-25), 0x0000) == -0.5);
  CHECK(error_ulp(DoubleDouble(65519.0), 0x7BFF) == doctest::Approx(-15.0 / 32));
  CHECK(error_ulp(DoubleDouble(65519.0), 0x7C00) == doctest::Approx(17.0 / 32));
  CHECK(error_ulp(DoubleDouble(1e30), 0x7C00) == 0);
  CHECK(error_ulp(DoubleDouble(-1e30), 0x7C00) > 1e20);
  CHECK(error_ulp(DoubleDouble(1.0, 0x1p-60), 0x3C00) == -0x1p-50);
}

TEST_CASE("validate_gpu: correctly rounded tables have errors of half a unit, and no breaks of order") {
  for (const ExactFunction& function : exact_functions()) {
    INFO(function.operation);
    const FunctionErrors errors = errors_of(function, "software half", rounded_table(function));
    CHECK(errors.misrounded == 0);
    CHECK(errors.wrong == 0);
    CHECK(errors.other_nans == 0);
    CHECK(errors.order_breaks == 0);
    CHECK(std::fabs(errors.largest_ulp) <= 0.5);
    CHECK(std::fabs(errors.largest_ulp) > 0.49);
    CHECK(errors.blocks.size() >= 31 * 8);
  }
  CHECK(exact_functions().size() == 13);
  for (const Operation& operation : operations()) {
    if (operation.family == "functions")
      CHECK((function_called(operation.name).rounded == operation.software));
  }
}

TEST_CASE("validate_gpu: wrong, misrounded and unordered answers of functions are told apart") {
  const ExactFunction& exponential = function_called("hexp");
  FunctionTable table = rounded_table(exponential);
  table[0x3C00] += 1;   // e
  table[0x4000] -= 60;  // e^2, now below its left neighbour
  table[0x0000] = 0x3C01;
  table[0x7C00] = 0x7BFF;
  table[0x3C01] = 0x7FFF;
  table[0x7E00] = 0xFE00;
  const FunctionErrors errors = errors_of(exponential, "GPU", table);
  CHECK(errors.misrounded == 2);
  CHECK(errors.wrong == 3);  // exp(0), exp(inf), a NaN
  CHECK(errors.other_nans == 1);
  CHECK(errors.order_breaks >= 1);
  CHECK(errors.largest_at == 0x4000);
  CHECK(errors.largest_ulp == doctest::Approx(-60).epsilon(0.01));
  const std::vector<FunctionTable> scalar{table}, right{rounded_table(exponential)};
  const RowAnswer answer = judge(exponential, scalar);
  CHECK(answer.result.misrounded == 2);
  CHECK(answer.result.mismatches == 3);
  CHECK(answer.result.other_nans == 1);
  CHECK(answer.examples.size() == 6);
  CHECK(answer.result.digest != judge(exponential, right).result.digest);

  const ExactFunction& logarithm = function_called("hlog");
  FunctionTable logs = rounded_table(logarithm);
  logs[0x3C00] = 0x0001;  // log(1) is documented
  logs[0xBC00] = 0x3C00;  // so is log(-1)
  CHECK(errors_of(logarithm, "GPU", logs).wrong == 2);

  const ExactFunction& approximate = function_called("htanh_approx");
  FunctionTable tanh = rounded_table(approximate);
  tanh[0x3800] += 1;  // by 2^-12 or so, within the documented 2^-10.987
  tanh[0x3A00] += 8;
  const FunctionErrors tanh_errors = errors_of(approximate, "GPU", tanh);
  CHECK(tanh_errors.misrounded == 1);
  CHECK(tanh_errors.wrong == 1);
}

TEST_CASE("validate_gpu: of a packed function both lanes count") {
  const ExactFunction& exponential = function_called("hexp2");
  std::vector<FunctionTable> tables{rounded_table(exponential), rounded_table(exponential)};
  CHECK(judge(exponential, tables).result.misrounded == 0);
  tables[1][0x3555] += 1;
  const RowAnswer answer = judge(exponential, tables);
  CHECK(answer.result.misrounded == 1);
  REQUIRE(answer.examples.size() == 1);
  CHECK(answer.examples[0].bits[0].ends_with(" 0x3555"));
  DeviceFailures failures;
  const auto lanes_apart = function_errors(
      [](std::string_view name) { return name == "hexp2"; }, false,
      [&](const probes::TabulatedFunction& function) {
        return function.pipe == probes::Pipe::scalar ? std::vector<FunctionTable>{tables[0]} : tables;
      },
      failures);
  REQUIRE(lanes_apart.size() == 3);
  CHECK(lanes_apart[1].subject == "GPU packed, first");
  CHECK(lanes_apart[1].misrounded == 0);
  CHECK(lanes_apart[2].misrounded == 1);
  std::vector<std::string> asked;
  const std::vector<FunctionErrors> errors = function_errors(
      [](std::string_view name) { return name == "hexp2" || name == "htanh_approx"; }, true,
      [&](const probes::TabulatedFunction& function) {
        asked.emplace_back(function.function);
        const auto& exact = function_called(asked.back().ends_with("approx") ? "htanh" : "hexp2");
        return std::vector<FunctionTable>(function.pipe == probes::Pipe::scalar ? 1 : 2,
                                          rounded_table(exact));
      },
      failures);
  CHECK(failures.all().empty());
  CHECK(asked == std::vector<std::string>{"hexp2", "h2exp2", "htanh_approx", "h2tanh_approx"});
  CHECK(errors.size() == 3 + 2);  // both lanes are alike
}

TEST_CASE("validate_gpu: the census of NaNs names what a function makes of them") {
  const auto lines_of = [](const std::string& id, const auto& function) {
    return nan_census(rows()[row_index(id)], [&](const std::vector<Operands>& all) {
      std::vector<std::uint64_t> results;
      for (const Operands& operands : all) results.push_back(function(operands));
      return results;
    });
  };
  const auto count_of = [](const std::vector<CensusLine>& lines, std::string_view inputs,
                           std::string_view operand, std::string_view result) {
    std::uint64_t count = 0;
    for (const CensusLine& line : lines)
      count +=
          line.input_class == inputs && line.operand == operand && line.result == result ? line.count : 0;
    return count;
  };
  const auto flips = lines_of("hneg, GPU", [](const Operands& x) { return x.a ^ 0x8000; });
  CHECK(count_of(flips, "+quiet NaN", "a", "operand negated") == 512);
  CHECK(count_of(flips, "-quiet NaN", "a", "operand negated") == 511);  // -0x7fff is the canonical one
  CHECK(count_of(flips, "-quiet NaN", "a", "canonical") == 1);
  CHECK(count_of(flips, "-signalling NaN", "a", "operand negated") == 511);
  CHECK(count_of(flips, "zeros", "", "-0") == 1);
  const auto quiets = lines_of("hadd, GPU", [](const Operands& x) -> std::uint64_t {
    const std::uint64_t nan = (x.a & 0x7FFF) > 0x7C00 ? x.a : x.b;
    return (nan & 0x7FFF) > 0x7C00
               ? nan | 0x0200
               : double_oracle::encode(double_oracle::decode(static_cast<std::uint16_t>(x.a)) +
                                       double_oracle::decode(static_cast<std::uint16_t>(x.b)));
  });
  CHECK(count_of(quiets, "+signalling NaN", "b", "operand made quiet") == 510);
  CHECK(count_of(quiets, "+signalling NaN", "b", "canonical") == 1);
  CHECK(count_of(quiets, "invalid operation", "", "canonical") == 2);
  CHECK(count_of(quiets, "cancellation", "", "+0") == 2);
  CHECK(count_of(quiets, "zeros", "", "+0") == 3);
  const auto widens = lines_of("half2float, GPU", [](const Operands& x) {
    return (x.a & 0x8000) << 16 | 0x7F800000 | (x.a & 0x3FF) << 13;
  });
  CHECK(count_of(widens, "-signalling NaN", "a", "operand") == 511);
  const auto narrows =
      lines_of("float2half_rn, GPU", [](const Operands&) -> std::uint64_t { return 0xFE00; });
  CHECK(count_of(narrows, "+quiet NaN", "a", "another NaN") == 511);
  const auto integers = lines_of("half2ll_rz, GPU", [](const Operands& x) { return x.a & 0x8000; });
  CHECK(count_of(integers, "-quiet NaN", "a", "integer") == 512);
  CHECK(lines_of("hlt, GPU", [](const Operands&) { return 0; }).empty());
}
