#pragma once
/// Which NaN a function returns for which, and with which sign it returns zeros: what most of PTX leaves open.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/frame/help_text.h"
#include "experiments/frame/record.h"
#include "experiments/gpu/validate_gpu/attempts.h"
#include "experiments/gpu/validate_gpu/drivers.h"
#include "experiments/gpu/validate_gpu/rows.h"
#include "experiments/validation/domains.h"

namespace experiments::validate_gpu {

/// Calls of one class with results of one kind.
struct CensusLine {
  /// A quiet or signalling NaN of either sign as one operand, the others 1; an invalid operation on numbers;
  /// zeros; or numbers that cancel.
  std::string input_class;
  std::string operand;  ///< which one is the NaN: a, b or c
  std::string result;  ///< canonical, operand, operand made quiet ..., another NaN, +0, -0, or another number
  std::uint64_t count = 0;
  Operands example = {};  ///< the first such call
  std::uint64_t example_result = 0;
};

using Answers = std::function<std::vector<std::uint64_t>(const std::vector<Operands>&)>;

/// What an operation makes of all 2046 NaNs of binary16, or of those of a wider format with payloads of as many
/// bits, in every operand.
/// Nothing for operations whose operands and results are no floating-point numbers, or where a NaN is no operand.
std::vector<CensusLine> nan_census(const Row& row, const Answers& answers);

/// Where the table nan_census has its answers from: the CPU, and a device with `drivers`.
struct CensusSource {
  bool on_cpu = true;
  const std::vector<Driver>* drivers = nullptr;
  /// Seconds after which no row on the device is begun.
  std::optional<double> device_s = std::nullopt;
};

/// For --help.
Outputs census_outputs();
/// The table nan_census, of the chosen rows that have answers. A row that the device fails at is added to `failures`;
/// a lost device is asked for none. Returns how many rows there was no time for.
std::size_t write_nan_census(RunRecord& record, const std::vector<std::size_t>& chosen,
                             const CensusSource& source, DeviceFailures& failures);

}  // namespace experiments::validate_gpu
