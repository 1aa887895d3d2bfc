#pragma once
/// A gradient record: what `halflab replay` needs to know of the gradients of a run, step by step.
///
/// A folder of three files. manifest.json: "format" and "version", where it comes from, and how often exponents were kept.
/// steps.csv: step, scale (S), found_inf (0 or 1), and magnitudes with S divided out: max_abs (largest finite weight
/// gradient), max_abs_all (of all gradients), twin_max_abs, twin_max_abs_all (of the same step in FP32, where it was
/// made); nan where nobody looked. exponents.csv: of some steps the counts of ExponentHistogram, with S divided out.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fp16/exponent_histogram.h"
#include "sim/trainer/trainer.h"

namespace experiments {

/// What a step tells. Magnitudes and exponents are those of gradients of the loss itself; NaN: unknown.
struct StepGradients {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

  std::uint64_t step = 0;
  double scale = unknown;        ///< S
  bool found_nonfinite = false;  ///< in a weight gradient, at S
  double max_abs = unknown;      ///< of the finite weight gradients
  double max_abs_all = unknown;  ///< of the finite gradients of weights and activations
  double twin_max_abs = unknown;
  double twin_max_abs_all = unknown;
  std::optional<fp16::ExponentHistogram> exponents = {};  ///< of all gradients, as the run rounded them at S
  std::optional<fp16::ExponentHistogram> twin_exponents = {};  ///< of the same step in FP32
};

struct GradientRecord {
  std::string source;  ///< model, policy and scaler, in a line
  std::string scaler;  ///< that chose the scales, with its options; empty where it is not known
  int exponents_every = 0;
  std::vector<StepGradients> steps = {};
};

/// The exponent of a power of two; none of what is none.
std::optional<int> log2_of_power(double scale);

/// Writes the folder's files. Throws std::runtime_error, naming the file.
void write_gradient_record(const std::filesystem::path& folder, const GradientRecord& record);

/// Throws std::runtime_error, naming the file and line, where it is none or of another version.
GradientRecord read_gradient_record(const std::filesystem::path& folder);

/// Records the steps that it is shown into the folder, as they come; a run that goes on after a kill goes on there. A
/// step that is not finite is made once more in FP32, and so is every `exponents_every`-th one, whose exponents are kept;
/// of a step of several backward passes (micro-batches, ranks, losses) each is made once more as it comes, since only the
/// last one tells whether their sum is finite. Without a folder nothing is recorded: a process that computes other ranks of
/// the run joins in their twins.
std::unique_ptr<sim::StepObserver> make_gradient_recorder(std::optional<std::filesystem::path> folder,
                                                          GradientRecord described, bool has_several_passes);

}  // namespace experiments
