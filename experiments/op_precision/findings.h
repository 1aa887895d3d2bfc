#pragma once
/// Every operation of the built-in models, and those that none of them has, in FP16 against FP64.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/op_precision/options.h"
#include "experiments/op_precision/replay.h"

namespace experiments::op_precision {

/// After how many steps operands are recorded for the first time: a tenth of all.
int early_step(const Options& options);

/// Throws std::invalid_argument, naming the option, for a name that is neither.
Reductions reductions_from_option(const std::string& reductions);

/// The worst of all evaluations of an operation in one step of a model.
struct Row {
  const sim::Operation* operation;
  std::string model;
  int step;
  std::string operands;  ///< "recorded", or what a stand-in's are
  std::size_t evaluations = 0;
  Measured worst = {};
};

/// How much larger an operation's operands may become.
struct Headroom {
  /// From the largest operand recorded to the smallest that fails, or to 65504; 0 where any recorded fail.
  double octaves;
  double
      operand;  ///< that magnitude, or the largest recorded; NaN where not the operands grow but logits that they are made of
  Failure failure;  ///< there; none where operands of 65504 pass
  /// The largest magnitude tried that passes, at most 1/32 of an octave below `operand`; NaN where recorded ones fail.
  double passing = std::numeric_limits<double>::quiet_NaN();

  /// "11.05 and 11.29", between which failure begins; "2", recorded and failing; nothing where no operands grow.
  std::string border() const;
};

/// Multiplies the activations of `recorded`, of which a stand-in's operands are made where one is given, until
/// the criterion is no longer met or the largest is 65504: octave by octave, the last one bisected to 1/32 of an
/// octave.
Headroom headroom_of(const Operands& recorded, const StandIn* stand_in, Reductions reductions);

/// What was found of one operation.
struct OperationFindings {
  const sim::Operation* operation;
  std::vector<Row> rows;  ///< of all models and steps; none where nothing was recorded
  /// The headroom of the largest operands in the last step of any model, unless headroom_if_failed() has one.
  std::optional<Headroom> headroom;

  Measured worst() const;
  /// 0 octaves where a row fails already, be it not that of the largest operands; else none.
  std::optional<Headroom> headroom_if_failed(Reductions reductions) const;
};

struct Findings {
  std::vector<OperationFindings> operations;  ///< in the order of the registry
  Reductions reductions;                      ///< that verdicts are of
};

/// Trains every model in FP32 and looks at its operations after a tenth of the steps and after all.
Findings measure(const Options& options, Run& run);

}  // namespace experiments::op_precision
