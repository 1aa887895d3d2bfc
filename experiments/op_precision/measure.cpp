#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "experiments/frame/parallel.h"
#include "experiments/op_precision/findings.h"
#include "experiments/training/training_setup.h"
#include "sim/ops/elementary.h"
#include "sim/ops/registry.h"
#include "sim/tensor/log2.h"

namespace experiments::op_precision {
namespace {

/// The operands that a headroom is measured from.
struct LargestOperands {
  double largest = -1;
  Operands recorded = {};
  const StandIn* stand_in = nullptr;
};

/// What was found of one operation in one model.
struct Found {
  std::vector<Row> rows;
  LargestOperands largest = {};
};

void add_worst(Measured& worst, const Measured& other) {
  const auto raise = [](double& value, double by) { value = std::max(value, by); };
  raise(worst.ranges.operand, other.ranges.operand);
  raise(worst.ranges.output, other.ranges.output);
  raise(worst.ranges.output_gradient, other.ranges.output_gradient);
  raise(worst.ranges.input_gradient, other.ranges.input_gradient);
  raise(worst.operand_rounding_u, other.operand_rounding_u);
  for (const Reductions reductions : all_reductions)
    worst.loss(reductions) = worst_of(worst.loss(reductions), other.loss(reductions));
}

std::size_t number_of(const sim::Operation& operation) {
  const auto all = sim::operations();
  return static_cast<std::size_t>(std::ranges::find(all, &operation) - all.begin());
}

/// Trains one model and measures its operations.
class Recorder {
 public:
  Recorder(const std::string& model, const Options& options)
      : training_{.model = model,
                  .model_option = "--models",
                  .batch = options.batch,
                  .steps = options.steps,
                  .seed = options.seed},
        setup_(training_),
        trainer_(setup_.trainer({.seed = options.seed})),
        found_(sim::operations().size()) {}

  void train_to(int step, Progress& progress) {
    train(trainer_, step - static_cast<int>(trainer_.steps_done()), progress);
  }

  void look(bool is_last) {
    const sim::PrecisionPolicy& policy = sim::find_precision_policy("fp32");
    const sim::RecordedStep step =
        sim::record_step(setup_.model(), trainer_.state(), trainer_.next_batch(), policy,
                         {.seed = training_.seed, .step = trainer_.steps_done()});
    for (const Operands& recorded : recorded_operands(step.tape, step.forward.loss)) {
      add(recorded, recorded, nullptr, is_last);
      for (const StandIn& row : stand_ins()) {
        if (row.recorded == recorded.operation && row.model == setup_.model_name())
          add(row.make(recorded, 1), recorded, &row, is_last);
      }
    }
  }

  std::vector<Found> found() && { return std::move(found_); }

 private:
  void add(const Operands& operands, const Operands& recorded, const StandIn* stand_in, bool is_last) {
    Found& found = found_[number_of(*operands.operation)];
    Row& row = row_of(found, *operands.operation, stand_in ? stand_in->meaning : "recorded");
    const Measured measured = op_precision::measure(operands);
    ++row.evaluations;
    add_worst(row.worst, measured);
    if (is_last && measured.ranges.operand > found.largest.largest)
      found.largest = {measured.ranges.operand, recorded, stand_in};
  }

  Row& row_of(Found& found, const sim::Operation& operation, std::string_view operands) {
    const int step = static_cast<int>(trainer_.steps_done());
    const auto row = std::ranges::find_if(
        found.rows, [&](const Row& r) { return r.step == step && r.operands == operands; });
    if (row != found.rows.end()) return *row;
    found.rows.push_back({.operation = &operation,
                          .model = std::string(setup_.model_name()),
                          .step = step,
                          .operands = std::string(operands)});
    return found.rows.back();
  }

  TrainingOptions training_;
  TrainingSetup setup_;
  sim::Trainer trainer_;
  std::vector<Found> found_;
};

std::vector<Found> record(const std::string& model, const Options& options, Progress& progress) {
  Recorder recorder(model, options);
  const int early = early_step(options);
  if (early < options.steps) {
    recorder.train_to(early, progress);
    recorder.look(false);
  }
  recorder.train_to(options.steps, progress);
  recorder.look(true);
  return std::move(recorder).found();
}

}  // namespace

int early_step(const Options& options) {
  return std::max(1, options.steps / 10);
}

Reductions reductions_from_option(const std::string& reductions) {
  const auto named =
      std::ranges::find_if(all_reductions, [&](Reductions s) { return name_of(s) == reductions; });
  if (named != all_reductions.end()) return *named;
  throw std::invalid_argument(
      fmt::format("--reductions: '{}' is not allowed; allowed: fp32, fp16", reductions));
}

Headroom headroom_of(const Operands& recorded, const StandIn* stand_in, Reductions reductions) {
  constexpr double largest_half = 65504, resolution_octaves = 1.0 / 32;
  const auto at = [&](double octaves) {
    const double factor = sim::elementary::pow(2.0, octaves);
    return stand_in ? stand_in->make(recorded, factor) : with_activations_times(recorded, factor);
  };
  const auto failure_at = [&](double octaves) {
    return Criterion().failure_of(op_precision::measure(at(octaves)).loss(reductions));
  };
  const auto magnitude = [&](double octaves) {
    return stand_in && stand_in->multiplies_logits ? std::nan("") : largest_operand(at(octaves));
  };
  const auto result = [&](double octaves, Failure failure) {
    return Headroom{.octaves = octaves, .operand = magnitude(octaves), .failure = failure};
  };
  const double largest = std::max(largest_operand(recorded), largest_operand(at(0)));
  const Failure now = failure_at(0);
  if (now != Failure::none || largest == 0) return result(0, now);
  const double most = sim::log2_of(largest_half / largest);
  double passes = 0, fails = 0;
  Failure failure = Failure::none;
  while (failure == Failure::none && fails < most) {
    passes = fails;
    fails = std::min(fails + 1, most);
    failure = failure_at(fails);
  }
  if (failure == Failure::none) return result(most, failure);
  while (fails - passes > resolution_octaves) {
    const double middle = (passes + fails) / 2;
    const Failure found = failure_at(middle);
    (found == Failure::none ? passes : fails) = middle;
    if (found != Failure::none) failure = found;
  }
  Headroom headroom = result(fails, failure);
  headroom.passing = magnitude(passes);
  return headroom;
}

std::string Headroom::border() const {
  if (std::isnan(operand)) return {};
  return std::isnan(passing) ? fmt::format("{:.4g}", operand)
                             : fmt::format("{:.4g} and {:.4g}", passing, operand);
}

Measured OperationFindings::worst() const {
  Measured worst;
  for (const Row& row : rows) add_worst(worst, row.worst);
  return worst;
}

std::optional<Headroom> OperationFindings::headroom_if_failed(Reductions reductions) const {
  const Measured of_rows = worst();
  const Failure failure = Criterion().failure_of(of_rows.loss(reductions));
  if (failure == Failure::none) return std::nullopt;
  return Headroom{.octaves = 0, .operand = of_rows.ranges.operand, .failure = failure};
}

Findings measure(const Options& options, Run& run) {
  Findings findings{.operations = {}, .reductions = reductions_from_option(options.reductions)};
  for (const sim::Operation* operation : sim::operations())
    findings.operations.push_back({.operation = operation, .rows = {}});
  const std::size_t models = options.models.size(), operations = findings.operations.size();
  Progress progress =
      run.progress("operations", models * static_cast<std::size_t>(options.steps) + operations);
  std::vector<std::vector<Found>> found(models);
  parallel_for_each(models, run.threads(),
                    [&](std::size_t i) { found[i] = record(options.models[i], options, progress); });
  parallel_for_each(operations, run.threads(), [&](std::size_t i) {
    OperationFindings& of_operation = findings.operations[i];
    const LargestOperands* largest = nullptr;
    for (const std::vector<Found>& of_model : found) {
      const Found& part = of_model[i];
      of_operation.rows.insert(of_operation.rows.end(), part.rows.begin(), part.rows.end());
      if (!part.rows.empty() && (!largest || part.largest.largest > largest->largest))
        largest = &part.largest;
    }
    of_operation.headroom = of_operation.headroom_if_failed(findings.reductions);
    if (largest && !of_operation.headroom)
      of_operation.headroom = headroom_of(largest->recorded, largest->stand_in, findings.reductions);
    progress.tick();
  });
  return findings;
}

}  // namespace experiments::op_precision
