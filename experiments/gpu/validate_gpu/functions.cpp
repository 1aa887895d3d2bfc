#include "experiments/gpu/validate_gpu/functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "experiments/gpu/probes/index.h"
#include "experiments/gpu/validate_gpu/rows.h"
#include "experiments/validation/double_oracle.h"
#include "fp16/vector/math_kernels.h"

namespace experiments::validate_gpu {
namespace {

using double_oracle::decode;
using fp16::detail::DoubleDouble;
using Order = ExactFunction::Order;
namespace kernel = fp16::detail::kernel;

constexpr std::uint32_t codes_count = 1U << 16;
constexpr std::size_t examples_of_a_kind = 4;

DoubleDouble square_root(double x) {
  return sqrt(DoubleDouble(x));
}

const Operation& operation_called(std::string_view name) {
  return *std::ranges::find(operations(), name, &Operation::name);
}

std::uint16_t expected_of(const ExactFunction& function, std::uint16_t operand) {
  return static_cast<std::uint16_t>(function.rounded({.a = operand}));
}

bool is_documented_at(const ExactFunction& function, std::uint16_t operand) {
  const int magnitude = operand & 0x7FFF;
  return magnitude == 0 || magnitude == 0x7C00 || (function.is_zero_at_one && operand == 0x3C00);
}

/// The operands from the lowest to the highest, of one sign or both.
std::vector<std::uint16_t> ascending(bool negative, bool positive) {
  std::vector<std::uint16_t> operands;
  if (negative) {
    for (int code = 0xFC00; code >= 0x8000; --code) operands.push_back(static_cast<std::uint16_t>(code));
  }
  if (positive) {
    for (int code = 0; code <= 0x7C00; ++code) operands.push_back(static_cast<std::uint16_t>(code));
  }
  return operands;
}

void count_breaks(const std::vector<std::uint16_t>& operands, bool increasing, const FunctionTable& table,
                  FunctionErrors& errors) {
  std::optional<double> previous;
  for (const std::uint16_t operand : operands) {
    const double answer = decode(table[operand]);
    if (std::isnan(answer)) continue;
    if (previous && (increasing ? answer < *previous : answer > *previous)) {
      if (errors.order_breaks++ == 0) errors.first_break = operand;
    }
    previous = answer;
  }
}

void count_breaks(Order order, const FunctionTable& table, FunctionErrors& errors) {
  if (order == Order::increasing) count_breaks(ascending(true, true), true, table, errors);
  if (order != Order::decreasing) return;
  count_breaks(ascending(true, false), false, table, errors);
  count_breaks(ascending(false, true), false, table, errors);
}

std::string_view name_of(AnswerFate fate) {
  return fate == AnswerFate::other_nan ? "NaN" : fate == AnswerFate::misrounded ? "rounding" : "value";
}

struct Call {
  std::uint16_t operand, answer;
};

/// The calls of one input: of a packed function those of both lanes.
std::vector<Call> calls_at(std::uint16_t code, std::span<const FunctionTable> tables) {
  std::vector<Call> calls{{code, tables[0][code]}};
  if (tables.size() == 1) return calls;
  const auto other = static_cast<std::uint16_t>(probes::partner(code, 16));
  calls.push_back({other, tables[1][other]});
  return calls;
}

Example example_of(const ExactFunction& function, AnswerFate fate, const std::vector<Call>& calls) {
  Example example{.kind = std::string(name_of(fate)), .bits = {}, .values = {}};
  for (const Call& call : calls) {
    append_lane(example, {.operand = half_number, .result = half_number, .operand_count = 1},
                {.operands = {.a = call.operand},
                 .result = call.answer,
                 .expected = expected_of(function, call.operand)});
  }
  return example;
}

FunctionTable rounded_table(const ExactFunction& function) {
  FunctionTable table(codes_count);
  for (std::uint32_t code = 0; code < codes_count; ++code)
    table[code] = expected_of(function, static_cast<std::uint16_t>(code));
  return table;
}

void append_device_errors(std::vector<FunctionErrors>& all, const ExactFunction& function, Subject subject,
                          const Tabulate& tabulate, DeviceFailures& failures) {
  const Operation& operation = operation_called(function.operation);
  const std::string name = cuda_function(operation, subject);
  const auto pipe = subject == Subject::gpu ? probes::Pipe::scalar : probes::Pipe::packed;
  const auto tables = failures.attempt({row_id(operation, subject)}, "its table",
                                       [&] { return tabulate({.function = name, .pipe = pipe}); });
  if (!tables) return;
  const std::string text(name_of(subject));
  if (tables->front() == tables->back()) {
    all.push_back(errors_of(function, text, tables->front()));
  } else {
    all.push_back(errors_of(function, text + ", first", tables->front()));
    all.push_back(errors_of(function, text + ", second", tables->back()));
  }
}

}  // namespace

const std::vector<ExactFunction>& exact_functions() {
  static const std::vector<ExactFunction> functions = [] {
    std::vector<ExactFunction> all;
    const auto append = [&](std::string_view name, DoubleDouble (*value)(double), Order order) {
      all.push_back(
          {.operation = name, .rounded = operation_called(name).software, .value = value, .order = order});
    };
    append("hsqrt", square_root, Order::increasing);
    append("hrcp", kernel::rcp, Order::decreasing);
    append("hrsqrt", kernel::rsqrt, Order::decreasing);
    append("hexp", kernel::exp, Order::increasing);
    append("hexp2", kernel::exp2, Order::increasing);
    append("hexp10", kernel::exp10, Order::increasing);
    for (const auto& [name, value] : {std::pair{"hlog", &kernel::log}, std::pair{"hlog2", &kernel::log2},
                                      std::pair{"hlog10", &kernel::log10}}) {
      append(name, value, Order::increasing);
      all.back().is_zero_at_one = true;
    }
    append("hsin", kernel::sin, Order::none);
    append("hcos", kernel::cos, Order::none);
    append("htanh", kernel::tanh, Order::increasing);
    append("htanh_approx", kernel::tanh, Order::increasing);
    all.back().largest_error = std::exp2(-10.987);  // PTX ISA, tanh.approx.f16
    return all;
  }();
  return functions;
}

AnswerFate fate_of(const ExactFunction& function, std::uint16_t operand, std::uint16_t answer) {
  const std::uint16_t expected = expected_of(function, operand);
  if (answer == expected) return AnswerFate::correct;
  if (is_nan(half_number, expected) && is_nan(half_number, answer)) return AnswerFate::other_nan;
  if (is_nan(half_number, expected) || is_nan(half_number, answer) || is_documented_at(function, operand))
    return AnswerFate::wrong;
  const bool too_far =
      std::isfinite(function.largest_error) &&
      std::fabs(decode(answer) - function.value(decode(operand)).high) > function.largest_error;
  return too_far ? AnswerFate::wrong : AnswerFate::misrounded;
}

double error_ulp(DoubleDouble exact, std::uint16_t answer) {
  constexpr double overflow = 65520;
  const double value = decode(answer), magnitude = std::fabs(exact.high);
  if (std::isinf(value) && magnitude >= overflow && std::signbit(value) == std::signbit(exact.high)) return 0;
  const double number = std::isinf(value) ? std::copysign(65536, value) : value;
  const int exponent = magnitude == 0 ? -14 : std::clamp(std::ilogb(magnitude), -14, 15);
  return ((number - exact.high) - exact.low) * std::ldexp(1, 10 - exponent);
}

FunctionErrors errors_of(const ExactFunction& function, std::string subject, const FunctionTable& table) {
  FunctionErrors errors{.function = std::string(function.operation), .subject = std::move(subject)};
  for (std::uint32_t code = 0; code < codes_count; ++code) {
    const auto operand = static_cast<std::uint16_t>(code);
    const std::uint16_t answer = table[code];
    const AnswerFate fate = fate_of(function, operand, answer);
    errors.other_nans += fate == AnswerFate::other_nan;
    errors.misrounded += fate == AnswerFate::misrounded;
    errors.wrong += fate == AnswerFate::wrong;
    if ((operand & 0x7FFF) >= 0x7C00 || is_nan(half_number, answer)) continue;
    const DoubleDouble exact = function.value(decode(operand));
    if (!std::isfinite(exact.high)) continue;
    const double error = error_ulp(exact, answer);
    if (std::fabs(error) > std::fabs(errors.largest_ulp))
      std::tie(errors.largest_ulp, errors.largest_at) = std::pair(error, operand);
    if (errors.blocks.empty() ||
        errors.blocks.back().first / FunctionErrors::block_size != code / FunctionErrors::block_size)
      errors.blocks.push_back({operand, error, error, 0});
    FunctionErrors::Block& block = errors.blocks.back();
    block.lowest_ulp = std::min(block.lowest_ulp, error);
    block.highest_ulp = std::max(block.highest_ulp, error);
    block.misrounded += fate == AnswerFate::misrounded;
  }
  count_breaks(function.order, table, errors);
  return errors;
}

RowAnswer judge(const ExactFunction& function, std::span<const FunctionTable> tables) {
  RowAnswer answer;
  std::array<std::size_t, 4> examples{};
  for (std::uint32_t code = 0; code < codes_count; ++code) {
    const std::vector<Call> calls = calls_at(static_cast<std::uint16_t>(code), tables);
    auto worst = AnswerFate::correct;
    for (const Call& call : calls) worst = std::max(worst, fate_of(function, call.operand, call.answer));
    answer.result.digest +=
        probes::digest_of(code, calls.front().answer, calls.size() == 1 ? 0 : calls.back().answer);
    answer.result.mismatches += worst == AnswerFate::wrong;
    answer.result.misrounded += worst == AnswerFate::misrounded;
    answer.result.other_nans += worst == AnswerFate::other_nan;
    if (worst == AnswerFate::correct || examples[static_cast<std::size_t>(worst)]++ >= examples_of_a_kind)
      continue;
    answer.examples.push_back(example_of(function, worst, calls));
  }
  return answer;
}

std::vector<FunctionErrors> function_errors(const std::function<bool(std::string_view)>& is_chosen,
                                            bool software_half, const Tabulate& tabulate,
                                            DeviceFailures& failures) {
  std::vector<FunctionErrors> all;
  for (const ExactFunction& function : exact_functions()) {
    if (!is_chosen(function.operation)) continue;
    // For the approximation there is none in software.
    if (software_half && std::isinf(function.largest_error))
      all.push_back(
          errors_of(function, std::string(name_of(Subject::software_half)), rounded_table(function)));
    if (!tabulate) continue;
    for (const Subject subject : {Subject::gpu, Subject::gpu_packed}) {
      if (!failures.is_device_lost()) append_device_errors(all, function, subject, tabulate, failures);
    }
  }
  return all;
}

}  // namespace experiments::validate_gpu
