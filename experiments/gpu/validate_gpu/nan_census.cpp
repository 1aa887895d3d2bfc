#include "experiments/gpu/validate_gpu/nan_census.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "experiments/frame/columns.h"
#include "experiments/frame/interrupt.h"
#include "experiments/gpu/validate_gpu/attempts.h"

namespace experiments::validate_gpu {
namespace {

constexpr std::uint32_t sign = 0x8000, infinity = 0x7C00, quiet = 0x0200, one = 0x3C00;

/// The code in `type` with the exponent and first fraction bits of a binary16 code that is zero, infinite, a NaN or
/// 1.
std::uint64_t widened(NumberType type, std::uint32_t code) {
  if (type.bits == 16) return code;
  const int fraction_bits = type.bits == 32 ? 23 : 52;
  const std::uint64_t largest_exponent = type.bits == 32 ? 0xFF : 0x7FF;
  const std::uint32_t magnitude = code & 0x7FFF;
  const std::uint64_t exponent = magnitude >= infinity ? largest_exponent
                                 : magnitude == 0      ? 0
                                                       : largest_exponent / 2;
  return std::uint64_t{code >> 15} << (type.bits - 1) | exponent << fraction_bits |
         std::uint64_t{code & 0x3FF} << (fraction_bits - 10);
}

std::uint64_t canonical(NumberType type) {
  return type.bits == 16 ? 0x7FFF : 0x7FFFFFFF;
}

/// `nan` is the binary16 code whose widening is the operand; 0 for none.
std::string_view kind_of(NumberType type, std::uint64_t result, std::uint32_t nan) {
  if (type.kind != NumberKind::floating_point) return "integer";
  if (is_nan(type, result)) {
    if (result == canonical(type)) return "canonical";
    if (nan == 0) return "another NaN";
    if (result == widened(type, nan)) return "operand";
    if (result == widened(type, nan | quiet)) return "operand made quiet";
    if (result == widened(type, nan ^ sign)) return "operand negated";
    if (result == widened(type, nan & ~sign)) return "operand without sign";
    return "another NaN";
  }
  if (result == 0) return "+0";
  if (result == widened(type, sign)) return "-0";
  return "another number";
}

struct Probe {
  std::string_view input_class;
  std::string_view operand;
  std::uint32_t nan;  ///< as a binary16 code; 0 for none
  Operands operands;
};

Operands filled(NumberType type, int count, std::array<std::uint32_t, 3> codes) {
  const auto code = [&](std::size_t i) { return static_cast<int>(i) < count ? widened(type, codes[i]) : 0; };
  return {.a = code(0), .b = code(1), .c = code(2)};
}

void append_nans(std::vector<Probe>& probes, NumberType type, int count) {
  constexpr std::array<std::string_view, 3> names{"a", "b", "c"};
  for (std::size_t place = 0; place < static_cast<std::size_t>(count); ++place) {
    for (const std::uint32_t first : {infinity, infinity | sign}) {
      for (std::uint32_t payload = 1; payload < 0x400; ++payload) {
        const bool is_quiet = (payload & quiet) != 0, negative = (first & sign) != 0;
        std::array<std::uint32_t, 3> codes{one, one, one};
        codes[place] = first | payload;
        probes.push_back({.input_class = is_quiet ? (negative ? "-quiet NaN" : "+quiet NaN")
                                                  : (negative ? "-signalling NaN" : "+signalling NaN"),
                          .operand = names[place],
                          .nan = first | payload,
                          .operands = filled(type, count, codes)});
      }
    }
  }
}

/// All combinations of zeros, ones and infinities: those of zeros alone, and of the others what cancels or is
/// invalid, which only the expected result tells.
void append_numbers(std::vector<Probe>& probes, const Row& row, NumberType type, int count) {
  constexpr std::array<std::uint32_t, 6> codes{0, sign, one, one | sign, infinity, infinity | sign};
  const auto base = static_cast<int>(codes.size());
  int combinations = 1;
  for (int i = 0; i < count; ++i) combinations *= base;
  for (int number = 0; number < combinations; ++number) {
    const std::array<std::size_t, 3> digits{static_cast<std::size_t>(number % base),
                                            static_cast<std::size_t>(number / base % base),
                                            static_cast<std::size_t>(number / base / base)};
    const Operands operands = filled(type, count, {codes[digits[0]], codes[digits[1]], codes[digits[2]]});
    const auto used = std::span(digits).first(static_cast<std::size_t>(count));
    const NumberType result_type = row.operation->result;
    const std::uint64_t expected = row.operation->software(operands);
    const bool zeros = std::ranges::all_of(used, [](std::size_t digit) { return digit < 2; });
    const bool ones = std::ranges::all_of(used, [](std::size_t digit) { return digit == 2 || digit == 3; });
    const bool is_zero = kind_of(result_type, expected, 0).ends_with("0");
    if (zeros)
      probes.push_back({"zeros", "", 0, operands});
    else if (is_nan(result_type, expected))
      probes.push_back({"invalid operation", "", 0, operands});
    else if (ones && is_zero)
      probes.push_back({"cancellation", "", 0, operands});
  }
}

bool has_probes(const Row& row) {
  const bool is_float =
      row.operation->operand.kind == NumberKind::floating_point && row.operation->result.bits > 1;
  return is_float && row.operation->software != nullptr;
}

std::vector<Probe> probes_of(const Row& row) {
  if (!has_probes(row)) return {};
  const NumberType operand = row.operation->operand, result = row.operation->result;
  std::vector<Probe> probes;
  append_nans(probes, operand, row.domain().operand_count);
  if (result.kind == NumberKind::floating_point)
    append_numbers(probes, row, operand, row.domain().operand_count);
  return probes;
}

/// Each operand in both lanes, the first lane's result.
Answers answers_of(const Row& row) {
  return [&row](const std::vector<Operands>& all) {
    std::vector<std::uint64_t> results;
    for (const Operands& operands : all) {
      if (!row.is_packed()) {
        results.push_back(row.function(operands));
        continue;
      }
      constexpr std::uint64_t both = 0x10001;
      results.push_back(
          row.function({.a = operands.a * both, .b = operands.b * both, .c = operands.c * both}) & 0xFFFF);
    }
    return results;
  };
}

Answers answers_of(const Row& row, const Driver& driver) {
  if (!driver.answers || !driver.obstacle().empty()) return {};
  const auto place = static_cast<std::size_t>(std::ranges::find(driver.rows, row.id()) - driver.rows.begin());
  return [&driver, place](const std::vector<Operands>& operands) { return driver.answers(place, operands); };
}

/// None where the row has none there.
Answers answers_of(const Row& row, const CensusSource& source) {
  if (!has_probes(row)) return {};
  if (row.is_on_gpu())
    return row.driver && source.drivers != nullptr ? answers_of(row, (*source.drivers)[*row.driver])
                                                   : Answers();
  return row.function != nullptr && source.on_cpu ? answers_of(row) : Answers();
}

struct CensusRow {
  const Row& row;
  const CensusLine& line;

  std::string example_bits(std::size_t place) const {
    Example example;
    append_lane(example, row.example_types(),
                {.operands = line.example, .result = line.example_result, .expected = std::nullopt});
    return example.bits[place];
  }
};

const TableOf<CensusRow> census_table{
    .name = "nan_census",
    .rows = "each kind of inputs and results of an operation, with the first ones",
    .columns = {{"operation", "", [](auto& r) { return r.row.operation->name; }},
                {"subject", "", [](auto& r) { return name_of(r.row.subject); }},
                {"inputs", "", [](auto& r) { return r.line.input_class; }},
                {"nan_operand", "", [](auto& r) { return r.line.operand; }},
                {"result", "", [](auto& r) { return r.line.result; }},
                {"count", "calls", [](auto& r) { return r.line.count; }},
                {"a_bits", "", [](auto& r) { return r.example_bits(0); }},
                {"b_bits", "", [](auto& r) { return r.example_bits(1); }},
                {"c_bits", "", [](auto& r) { return r.example_bits(2); }},
                {"result_bits", "", [](auto& r) { return r.example_bits(3); }}}};

}  // namespace

std::vector<CensusLine> nan_census(const Row& row, const Answers& answers) {
  const std::vector<Probe> probes = probes_of(row);
  std::vector<Operands> operands;
  for (const Probe& probe : probes) operands.push_back(probe.operands);
  const std::vector<std::uint64_t> results = answers(operands);
  std::vector<CensusLine> lines;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    const Probe& probe = probes[i];
    CensusLine line{.input_class = std::string(probe.input_class),
                    .operand = std::string(probe.operand),
                    .result = std::string(kind_of(row.operation->result, results[i], probe.nan)),
                    .count = 1,
                    .example = probe.operands,
                    .example_result = results[i]};
    // Zeros and integers, whose values matter, stand one by one.
    const bool alone = line.input_class == "zeros";
    const auto same = std::ranges::find_if(lines, [&](const CensusLine& other) {
      return !alone && other.input_class == line.input_class && other.operand == line.operand &&
             other.result == line.result &&
             (line.result != "integer" || other.example_result == line.example_result);
    });
    if (same == lines.end()) {
      lines.push_back(std::move(line));
    } else {
      ++same->count;
    }
  }
  return lines;
}

Outputs census_outputs() {
  return outputs_of(census_table);
}

std::size_t write_nan_census(RunRecord& record, const std::vector<std::size_t>& chosen,
                             const CensusSource& source, DeviceFailures& failures) {
  const Budget budget(source.device_s);
  std::size_t left_out = 0;
  const auto write = [add = census_table.start(record)](const Row& row,
                                                        const std::vector<CensusLine>& lines) {
    for (const CensusLine& line : lines) add({row, line});
  };
  for (const std::size_t index : chosen) {
    const Row& row = rows()[index];
    const Answers answers = answers_of(row, source);
    if (!answers) continue;
    throw_if_interrupted();
    if (!row.is_on_gpu()) {
      write(row, nan_census(row, answers));
    } else if (failures.is_device_lost()) {
      continue;
    } else if (!budget.allows()) {
      ++left_out;
    } else if (const auto lines =
                   failures.attempt({row.id()}, "census of NaNs", [&] { return nan_census(row, answers); })) {
      write(row, *lines);
    }
  }
  return left_out;
}

}  // namespace experiments::validate_gpu
