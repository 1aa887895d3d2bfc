#include "experiments/gpu/validate_gpu/rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/gpu/validate_gpu/drivers.h"
#include "experiments/gpu/validate_gpu/operations.h"

namespace experiments::validate_gpu {
namespace {

bool is_nan_code(const Operands& operands) {
  return is_nan(half_number, operands.a);
}

/// The operands of the second lane: another pair for every pair, so that a lane that reads or writes the
/// other one is found.
Operands second_lane(const Operands& first) {
  return {.a = ((first.a + first.b) ^ 0x55AA) & 0xFFFF, .b = first.a};
}

Operands packed_operands(const Operands& first, const Operands& second) {
  return {.a = first.a | second.a << 16, .b = first.b | second.b << 16};
}

std::uint64_t packed_result(LaneResult lane, std::uint64_t first, std::uint64_t second) {
  const auto both = [&](std::uint64_t when_true) {
    return (first != 0 ? when_true : 0) | (second != 0 ? when_true : 0) << 16;
  };
  switch (lane) {
    case LaneResult::code:
      return first | second << 16;
    case LaneResult::one:
      return both(0x3C00);
    case LaneResult::mask:
      return both(0xFFFF);
    case LaneResult::all:
      return first != 0 && second != 0;
  }
  return 0;
}

struct Expected {
  std::uint64_t value;
  bool is_documented_deviation;
};

Expected expected_of(const Row& row, const Operands& operands) {
  const std::uint64_t reference = row.reference(operands);
  if (row.deviation == nullptr || !row.deviation->applies(operands)) return {reference, false};
  return {row.deviation->result, row.deviation->result != reference};
}

Function header_function(const Operation& operation, Subject subject) {
  const auto functions = cuda_header_functions();
  const auto found = std::ranges::find(functions, operation.name, &HeaderFunctions::operation);
  if (found == functions.end()) return nullptr;
  return subject == Subject::cuda_header ? found->scalar : found->packed;
}

std::optional<std::size_t> driver_of(const std::string& id) {
  const auto& drivers = device_drivers();
  const auto found = std::ranges::find_if(
      drivers, [&](const Driver& driver) { return std::ranges::find(driver.rows, id) != driver.rows.end(); });
  if (found == drivers.end()) return std::nullopt;
  return static_cast<std::size_t>(found - drivers.begin());
}

Row make_row(const Operation& operation, Subject subject) {
  Row row{.operation = &operation,
          .subject = subject,
          .function = nullptr,
          .reference = operation.software,
          .deviation = nullptr,
          .driver = std::nullopt};
  if (subject == Subject::software_half) {
    row.function = operation.software;
    row.reference = operation.oracle;
    return row;
  }
  const auto& deviations = documented_deviations();
  const auto deviation = std::ranges::find(deviations, operation.name, &Deviation::operation);
  if (deviation != deviations.end()) row.deviation = &*deviation;
  if (row.is_on_gpu()) {
    row.driver = driver_of(row.id());
  } else {
    row.function = header_function(operation, subject);
  }
  return row;
}

template <typename Visit>
void for_each_trial(const Row& row, std::uint32_t shard, Visit visit) {
  for (std::uint64_t index = 0; index < row.domain().shard_size; ++index) {
    if (!visit(trial(row, shard, static_cast<std::uint32_t>(index)))) return;
  }
}

}  // namespace

const std::vector<Deviation>& documented_deviations() {
  constexpr std::uint64_t top_bit = std::uint64_t{1} << 63;
  constexpr std::string_view lowest = "a NaN becomes -2^63, not 0", highest = "a NaN becomes 2^63, not 0";
  static const std::vector<Deviation> deviations{
      {"hneg", "a NaN becomes 0x7FFF and keeps neither sign nor payload", is_nan_code, 0x7FFF},
      {"habs", "a NaN becomes 0x7FFF and does not keep its payload", is_nan_code, 0x7FFF},
      {"half2ll_rn", lowest, is_nan_code, top_bit},
      {"half2ll_rz", lowest, is_nan_code, top_bit},
      {"half2ll_rd", lowest, is_nan_code, top_bit},
      {"half2ll_ru", lowest, is_nan_code, top_bit},
      {"half2ull_rn", highest, is_nan_code, top_bit},
      {"half2ull_rz", highest, is_nan_code, top_bit},
      {"half2ull_rd", highest, is_nan_code, top_bit},
      {"half2ull_ru", highest, is_nan_code, top_bit}};
  return deviations;
}

const Domain& Row::domain() const {
  return driver ? device_drivers()[*driver].domain : *operation->domain;
}

ExampleTypes Row::example_types() const {
  return {
      .operand = operation->operand, .result = operation->result, .operand_count = domain().operand_count};
}

std::string Row::id() const {
  return row_id(*operation, subject);
}

std::string row_id(const Operation& operation, Subject subject) {
  return fmt::format("{}, {}", operation.name, name_of(subject));
}

Example example_of(const Row& row, const Trial& trial) {
  Example example{.kind = "value", .bits = {}, .values = {}};
  ExampleTypes types = row.example_types();
  const Operands& all = trial.operands;
  if (!row.is_packed()) {
    append_lane(example, types, {.operands = all, .result = trial.result, .expected = trial.expected});
    return example;
  }
  const LaneResult kind = row.operation->lane;
  if (kind == LaneResult::one) types.result = half_number;
  if (kind == LaneResult::mask) types.result = {NumberKind::unsigned_integer, 16};
  for (const int shift : {0, 16}) {
    const auto lane = [shift](std::uint64_t both) { return both >> shift & 0xFFFF; };
    ExampleLane one{.operands = {.a = lane(all.a), .b = lane(all.b), .c = lane(all.c)},
                    .result = lane(trial.result),
                    .expected = lane(trial.expected)};
    if (kind == LaneResult::all && shift == 16) one.result = one.expected = std::nullopt;
    append_lane(example, types, one);
  }
  return example;
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> made;
    for (const Operation& operation : operations()) {
      for (const Subject subject : operation.subjects) made.push_back(make_row(operation, subject));
    }
    return made;
  }();
  return all;
}

std::vector<ShardFile::Line> shard_lines() {
  std::vector<ShardFile::Line> lines;
  for (const Row& row : rows()) lines.push_back({.row = row.id(), .shard_count = row.domain().shard_count});
  return lines;
}

Trial trial(const Row& row, std::uint32_t shard, std::uint32_t index) {
  const Operands first = row.domain().at(shard, index);
  const Expected expected = expected_of(row, first);
  if (!row.is_packed()) {
    return {.operands = first,
            .result = row.function(first),
            .expected = expected.value,
            .is_documented_deviation = expected.is_documented_deviation};
  }
  const Operands second = second_lane(first);
  const Expected other = expected_of(row, second);
  const Operands both = packed_operands(first, second);
  return {.operands = both,
          .result = row.function(both),
          .expected = packed_result(row.operation->lane, expected.value, other.value),
          .is_documented_deviation = expected.is_documented_deviation || other.is_documented_deviation};
}

ShardResult run_shard(const Row& row, std::uint32_t shard) {
  ShardResult shard_result;
  validation::ResultDigest digest;
  for_each_trial(row, shard, [&](const Trial& trial) {
    digest.add(trial.result);
    shard_result.mismatches += trial.is_mismatch();
    shard_result.documented += trial.is_documented_deviation;
    return true;
  });
  shard_result.digest = digest.value();
  return shard_result;
}

std::vector<Trial> counterexamples(const Row& row, std::uint32_t shard, std::size_t limit) {
  std::vector<Trial> found;
  for_each_trial(row, shard, [&](const Trial& trial) {
    if (trial.is_mismatch() && found.size() < limit) found.push_back(trial);
    return found.size() < limit;
  });
  return found;
}

}  // namespace experiments::validate_gpu
