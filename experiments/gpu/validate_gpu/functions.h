#pragma once
/// Functions of one half that are not promised to be correctly rounded (hexp, hlog, hsin, hsqrt, hrcp ...): all
/// 65,536 answers against the exact values.

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/gpu/probes/sweep.h"
#include "experiments/gpu/validate_gpu/attempts.h"
#include "experiments/gpu/validate_gpu/drivers.h"
#include "experiments/gpu/validate_gpu/operations.h"
#include "fp16/vector/double_double.h"

namespace experiments::validate_gpu {

/// The codes that a function answers, by the code of the operand.
using FunctionTable = std::vector<std::uint16_t>;

struct ExactFunction {
  enum class Order {
    none,
    increasing,
    decreasing  ///< for operands of one sign
  };

  std::string_view operation;
  Function rounded;  ///< the software half's, correctly rounded
  /// The exact value at a finite half, with a relative error below 2^-80.
  fp16::detail::DoubleDouble (*value)(double);
  Order order = Order::none;
  bool is_zero_at_one = false;  ///< and the header says so
  /// The documented maximum of the absolute error: answers beyond it are wrong.
  double largest_error = std::numeric_limits<double>::infinity();
};

/// Those of the family "functions", in the order of operations().
const std::vector<ExactFunction>& exact_functions();

enum class AnswerFate {
  correct,
  other_nan,   ///< a NaN of other bits
  misrounded,  ///< not the correctly rounded value, which is not promised
  wrong        ///< a number for a NaN or a NaN for a number, or not what is documented
};

/// Documented are the values at zeros and infinities, and where there is none.
AnswerFate fate_of(const ExactFunction& function, std::uint16_t operand, std::uint16_t answer);

/// In units in the last place of binary16 at the exact value, with the answer's sign. An infinite answer counts
/// as 65536, and is right from 65520 on. The error of the error is below 1e-12.
double error_ulp(fp16::detail::DoubleDouble exact, std::uint16_t answer);

/// What one table's errors are. Operands where the value is a NaN, or which are infinite, have none.
struct FunctionErrors {
  /// Errors of neighbouring operands, of one sign.
  struct Block {
    std::uint16_t first;  ///< code of the smallest one
    double lowest_ulp, highest_ulp;
    std::uint64_t misrounded;
  };
  static constexpr std::uint32_t block_size = 128;

  std::string function;  ///< the operation
  std::string subject;
  std::uint64_t other_nans = 0, misrounded = 0, wrong = 0;
  double largest_ulp = 0;  ///< in magnitude
  std::uint16_t largest_at = 0;
  std::uint64_t order_breaks = 0;  ///< neighbouring operands whose answers are in the wrong order
  std::uint16_t first_break = 0;   ///< the code of the larger one of them
  std::vector<Block> blocks;
};

FunctionErrors errors_of(const ExactFunction& function, std::string subject, const FunctionTable& table);

/// What a sweep would say of the tables that probes::tabulate reads out, one of a scalar and two of a packed
/// function; with the same digest.
RowAnswer judge(const ExactFunction& function, std::span<const FunctionTable> tables);

using Tabulate = std::function<std::vector<FunctionTable>(const probes::TabulatedFunction&)>;

/// Errors of the software half, and of a device where `tabulate` is given, in the functions that `is_chosen` names.
/// The lanes of a packed function stand apart only if they differ. A table that the device fails at is added to
/// `failures` and left out; a lost device is asked for none.
std::vector<FunctionErrors> function_errors(const std::function<bool(std::string_view)>& is_chosen,
                                            bool software_half, const Tabulate& tabulate,
                                            DeviceFailures& failures);

/// For --help.
Outputs function_outputs();
/// The tables functions and ulp_errors, the figure ulp_errors and a paragraph of the verdict. Nothing for none.
void write_functions(Run& run, const std::vector<FunctionErrors>& errors);

}  // namespace experiments::validate_gpu
