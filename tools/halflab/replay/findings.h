#pragma once
/// What each scaler would have done on recorded gradients.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/training/gradient_record.h"
#include "sim/loss_scaling/loss_scaler.h"

namespace halflab::replay {

/// Why what happens at a step cannot be told from the record; what the replay then goes on with.
enum class Untold {
  no,
  overflow,  ///< it overflowed at the run's larger scale, and nobody knows by how much: goes on as if it did not at this one
  exponents,  ///< the scaler asks for exponents that were not kept: it keeps its scale
  twin        ///< likewise for a twin
};

struct ReplayedStep {
  double scale = 1;  ///< S before the step
  sim::Decision decision = sim::Decision::apply;
  Untold untold = Untold::no;
  std::optional<double>
      flushed_share;  ///< of the step's non-zero gradients, at S; where the record has its twin
};

struct Replay {
  std::string scaler;  ///< with its options
  std::vector<ReplayedStep> steps;
  std::string abort_reason;  ///< of a scaler that ended the run

  std::size_t skipped() const;
  std::size_t untold() const;
  bool is_told() const;  ///< at any step
  std::optional<double> mean_flushed_share() const;
};

/// What a log without gradients tells of them: an overflow at S means that one of them reached 65520 / S.
struct LogBounds {
  struct Overflow {
    std::size_t line;  ///< from 1
    double scale;      ///< 0 where S was 0, or sank to it: this bounds nothing
  };

  std::string kind;  ///< "DeepSpeed"
  std::vector<Overflow> overflows;

  /// The overflows at scales above 0.
  std::vector<Overflow> bounding() const;
  /// The scales of the bounding overflows lie from here to there; NaN where there are none.
  double lowest_scale() const;
  double highest_scale() const;
  /// How many of the last bounding ones came each at a smaller scale than the one before; 1 where S had grown in between, 0
  /// where there are none.
  std::size_t sinking() const;
};

struct Findings {
  experiments::GradientRecord record;
  std::vector<Replay> replays;

  bool has_scales() const;  ///< whether the record says what S was

  /// Whether the replay's S is the record's at every step.
  bool equals_record(const Replay& replay) const;
};

/// A record's folder, or one that a single record lies in; or a CSV file with the column step and max_abs (largest
/// gradient, S divided out), or scale and found_inf, or all of them. Throws std::runtime_error, naming the file.
experiments::GradientRecord read_record(const std::string& path);

/// None where the file is no log of Apex, DeepSpeed or fairseq.
std::optional<LogBounds> read_log(const std::string& path);

/// The scaler over all steps; the trajectory of the weights is the recorded one.
Replay replay(const experiments::GradientRecord& record, const std::string& scaler);

experiments::Outputs outputs();
void report(experiments::Run& run, const Findings& found);
void report(experiments::Run& run, const LogBounds& bounds);
void draw_figures(experiments::Run& run, const Findings& found);

}  // namespace halflab::replay
