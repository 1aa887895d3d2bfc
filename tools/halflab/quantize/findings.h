#pragma once
/// What `halflab quantize` finds of tensors.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/frame/tensor_files/tensor_set.h"
#include "tools/halflab/quantize/options.h"
#include "tools/halflab/quantize/quantized.h"
#include "tools/halflab/square_sum.h"

namespace halflab::quantize {

/// A tensor, or all together: the values against those that the codes stand for.
struct TensorFound {
  std::string name;
  std::string stored_as;  ///< format; empty of all together
  std::string shape;
  std::uint64_t values = 0;
  std::uint64_t nonzero = 0;     ///< finite
  std::uint64_t nonfinite = 0;   ///< NaN or infinite in the file
  std::uint64_t flushed = 0;     ///< of the non-zero ones: become zero
  std::uint64_t overflowed = 0;  ///< of these: beyond the largest number of the format, or of their block
  std::uint64_t lost = 0;        ///< finite ones that become NaN or infinite
  std::uint64_t bytes = 0;       ///< of codes and scales
  SquareSum squares;             ///< of what is finite before and after
  SquareSum error_squares;       ///< of the differences
  double max_abs = 0, max_error = 0;
  std::optional<float> tensor_scale;
  bool is_rounded_first = false;  ///< to binary32 from binary64, as block formats take values

  TensorFound& operator+=(const TensorFound& other);

  double share(std::uint64_t count) const {
    return nonzero == 0 ? 0 : static_cast<double>(count) / static_cast<double>(nonzero);
  }
  /// Whether all that is not zero becomes NaN or infinite.
  bool has_nothing_left() const { return lost > 0 && squares.is_zero(); }
  /// ||quantized - values|| / ||values|| of what stays finite; 0 where all is zero, infinite where nothing is left.
  double relative_error() const;
  /// Signal to quantization noise in dB; infinite without an error, -infinite where nothing is left.
  double sqnr() const;
  double bits_per_value() const {
    return values == 0 ? 0 : 8 * static_cast<double>(bytes) / static_cast<double>(values);
  }
};

struct MeasuredTensor {
  TensorFound found;
  Quantized quantized;
};

/// `consume` is given what quantize() gives it.
MeasuredTensor measure_tensor(const experiments::tensor_files::StoredTensor& tensor, const Recipe& recipe,
                              int threads, const ValueConsumer& consume);

struct Findings {
  Recipe recipe;
  std::vector<TensorFound> tensors;
  TensorFound total;
  std::string remark;  ///< on integers in the files
  std::string to;      ///< the file that was written; empty without
};

/// Quantizes one tensor after the other, and writes them all where options.to asks for it. Throws
/// std::invalid_argument where two parts would have one name, or the file is one of those that are read.
Findings measure(const experiments::tensor_files::TensorSet& set, const Options& options,
                 experiments::Run& run);

/// What the format loses of all tensors together; `of_tensors`, such as the worst of them, stands behind the error.
std::string losses_in_words(const TensorFound& total, const Recipe& recipe, const std::string& of_tensors);

/// A note below a table of tensors that were rounded to binary32 first.
inline constexpr const char* rounded_first_note =
    "Block formats take values as binary32, to which those of binary64 are rounded first; errors are against "
    "binary64.";

experiments::Outputs outputs();
void report(experiments::Run& run, const Findings& found);

}  // namespace halflab::quantize
