/// What does summing the gradients of N workers in FP16 lose?
///
/// Trains in FP32, then lets N = 2 .. 4096 virtual workers average their gradients of the weights reached: by
/// six algorithms, each an exact order of additions; in FP16, with FP32 accumulation between FP16 messages,
/// or in FP32; dividing before the sum, half before and half after, or after. All is held against the exact
/// mean of what the workers hold, so that what their own backward passes lose does not count.

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "experiments/allreduce_precision/figures.h"
#include "experiments/allreduce_precision/measurement.h"
#include "experiments/allreduce_precision/record.h"
#include "experiments/frame/text_table.h"
#include "experiments/training/laboratory.h"
#include "experiments/training/options.h"
#include "experiments/training/training_setup.h"

namespace experiments::allreduce_precision {
namespace {

std::string error_text(const Measured& measured) {
  return measured.overflows() ? "overflow" : fmt::format("{:.2g}", measured.loss.relative_error());
}

/// Relative errors by algorithm and precision at S. No row for what repeats another: where FP32 accumulation
/// is FP16 bit for bit, and FP32 in other orders than the ring's.
TextTable algorithms_table(const Findings& found, const std::vector<std::size_t>& workers) {
  using enum sim::AllReduceAlgorithm;
  using enum sim::AllReducePrecision;
  std::vector<sim::AllReduce> rows;
  for (const sim::AllReduceAlgorithm algorithm : measured_algorithms)
    rows.push_back({.algorithm = algorithm});
  rows.push_back({.algorithm = binary_tree, .precision = fp32_accumulation});
  rows.push_back({.algorithm = direct, .precision = fp32_accumulation});
  rows.push_back({.algorithm = ring, .precision = fp32});
  TextTable table{.columns = {"order of additions", "precision"}, .rows = {}};
  for (const sim::AllReduce& how : rows)
    table.rows.push_back(
        {std::string(sim::name_of(how.algorithm)), std::string(sim::name_of(how.precision))});
  for (const Source source : sources) {
    for (const std::size_t count : workers) {
      const Setting setting{.source = source, .scale_log2 = found.scale_log2, .workers = count};
      table.columns.push_back(fmt::format("{}, N = {}", name_of(source), count));
      for (std::size_t row = 0; row < rows.size(); ++row)
        table.rows[row].push_back(error_text(at(found, setting, rows[row])));
    }
  }
  return table;
}

Setting network_at(int scale_log2, std::size_t workers) {
  return {.source = Source::network, .scale_log2 = scale_log2, .workers = workers};
}

/// What the order of dividing flushes and overflows, and at which scales it is good.
TextTable divisions_table(const Findings& found, const std::vector<std::size_t>& workers) {
  TextTable table{.columns = {"division", "values flushed, S = 1", "error, S = 1",
                              fmt::format("overflow, S = 2^{}", found.scale_log2)},
                  .rows = {}};
  for (const std::size_t count : workers) table.columns.push_back(fmt::format("good S, N = {}", count));
  for (const sim::AllReduceDivision division : sim::all_reduce_divisions) {
    const sim::AllReduce how = usual_with(division);
    const Measured& unscaled = at(found, network_at(0, workers.back()), how);
    const auto overflow = first_overflow(found.all_reduces, Source::network, found.scale_log2, how);
    std::vector<std::string> cells{
        std::string(sim::name_of(division)), percent(unscaled.fraction_inputs_flushed), error_text(unscaled),
        overflow
            ? fmt::format("from N = {}", *overflow)
            : (at(found, network_at(found.scale_log2, workers.back()), how).overflows() ? "at the workers"
                                                                                        : "never")};
    for (const std::size_t count : workers) {
      const auto window = usable_scales(found.scales, Source::network, count, division);
      cells.push_back(window ? fmt::format("2^{} .. 2^{}", window->lowest, window->highest) : "none");
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string order_sentence(const Findings& found, std::size_t workers) {
  using enum sim::AllReduceAlgorithm;
  using enum sim::AllReducePrecision;
  const auto measured = [&](const sim::AllReduce& how) -> const Measured& {
    return at(found, network_at(found.scale_log2, workers), how);
  };
  const auto error = [&](const sim::AllReduce& how) { return percent(measured(how).loss.relative_error()); };
  return fmt::format(
      "Averaging the gradients of {} workers in FP16 leaves an error of {} of the mean's norm round a ring, "
      "where one value at a time meets an ever larger sum, and {} by recursive doubling, which adds sums of "
      "equal weight; rounding the exact mean once costs {}, FP32 all the way {}. FP32 accumulation between "
      "FP16 messages changes no bit where a worker adds two values at a time (ring, recursive doubling, also "
      "as Rabenseifner's, recursive halving): it suffices only where one worker adds all values by itself "
      "(direct, {}).",
      workers, error({.algorithm = ring}), error({.algorithm = recursive_doubling}),
      percent(measured(usual).relative_error_of_one_rounding), error({.algorithm = ring, .precision = fp32}),
      error({.algorithm = direct, .precision = fp32_accumulation}));
}

std::string division_sentence(const Findings& found) {
  std::vector<std::string> outcomes;
  for (const sim::AllReduceDivision division : sim::all_reduce_divisions) {
    const auto overflow =
        first_overflow(found.all_reduces, Source::network, found.scale_log2, usual_with(division));
    outcomes.push_back(overflow ? fmt::format("overflows from {} workers on", *overflow) : "never overflows");
  }
  return fmt::format(
      "At S = 2^{}, dividing before the sum (as PyTorch's DDP) {}, by about sqrt(N) before and after (FSDP) "
      "{}, "
      "after it (DeepSpeed and Apex by default) {}. For powers of two the three are the same arithmetic some "
      "octaves apart, so that where to divide is a choice of S: before, a mean overflows only where the "
      "workers' own gradients nearly do, and a loss scale keeps what the division would flush; after, S must "
      "be up to N times smaller.",
      found.scale_log2, outcomes[0], outcomes[1], outcomes[2]);
}

void write_verdict(RunRecord& record, const Findings& found, const Options& options,
                   const std::string& setting) {
  const std::vector<std::size_t> workers = shown_workers(options.max_workers_log2);
  if (!found.nonfinite_clause.empty()) {
    record.verdict(found.nonfinite_clause + ": the training itself has diverged.");
  } else if (at(found, network_at(found.scale_log2, workers.back()), usual).fraction_inputs_overflow > 0) {
    record.verdict(fmt::format(
        "At S = 2^{} workers' own gradients overflow, which no order of adding or dividing mends.",
        found.scale_log2));
  } else {
    record.verdict(order_sentence(found, workers.back()));
    record.verdict(division_sentence(found));
  }
  record.verdict(algorithms_table(found, workers).text());
  record.verdict(divisions_table(found, workers).text());
  record.verdict(setting);
}

void run(Run& run, Options& options) {
  const TrainingSetup setup(options.training);
  sim::Trainer trainer = setup.trainer({.seed = options.training.seed});
  record_settings(run.record(), "optimizer", trainer.optimizer().name(), trainer.optimizer().options());
  const Findings found = measure(setup, trainer, options, run);
  write_tables(run.record(), found, options);
  write_summary(run.record(), found, options);
  const std::string setting = fmt::format(
      "{}, policy {}; step {}, {} elements of the gradient, seed {}; {}. network: {} micro-batches of {}, a "
      "worker each; further workers draw one of them. normal: independent draws for every worker, each "
      "element "
      "with the mean and deviation of these micro-batches.",
      setup.description(), options.policy, setup.steps(), found.elements, options.training.seed,
      setup.quality(found.evaluation), options.pool, *options.training.batch);
  draw_figures(run, found, options, setting);
  write_verdict(run.record(), found, options, setting);
}

}  // namespace
}  // namespace experiments::allreduce_precision

int main(int argc, char** argv) {
  using namespace experiments;
  allreduce_precision::Options options;
  return run(
      argc, argv,
      {.program = {.name = "allreduce_precision",
                   .question = "What does summing the gradients of N workers in FP16 lose?",
                   .example = "allreduce_precision --model autoencoder --steps 200 --out results/allreduce",
                   .summary_keys =
                       {{"workers", "the largest N, to which the keys below refer"},
                        {"elements", "elements of the gradient that were averaged"},
                        {"scale_log2", "log2 of the loss scale S"},
                        {"SOURCE.relative_error.ALGORITHM.PRECISION",
                         "||mean - exact mean|| / ||exact mean|| at S, divided before the sum"},
                        {"SOURCE.relative_error.one_rounding", "of the exact mean rounded once to FP16"},
                        {"SOURCE.flushed_at_scale_1.DIVISION",
                         "mean non-zero and result zero, over the non-zero, at S = 1; as all below by "
                         "recursive doubling in FP16"},
                        {"SOURCE.inputs_flushed_at_scale_1.DIVISION",
                         "workers' non-zero values that the division before the sum makes zero"},
                        {"SOURCE.overflow_from_workers.DIVISION",
                         "the smallest N at which the mean overflows at S, or \"none\""},
                        {"SOURCE.usable_scale_lowest_log2.DIVISION",
                         "of the scales without overflow whose error is at most a quarter above the least"},
                        {"SOURCE.usable_scale_highest_log2.DIVISION", "likewise"}}},
       .options =
           [&](CommandLine& command_line) {
             options.training.bind(command_line, 20);
             add_policy(command_line, options.policy);
             command_line.add("--pool", options.pool, "micro-batches of --batch examples, each of one worker",
                              {.minimum = 2, .maximum = 8192, .quick = 8});
             command_line.add("--elements", options.elements,
                              "elements of the gradient that are averaged, chosen at random",
                              {.minimum = 1, .maximum = 65536, .quick = 512});
             command_line.add("--max-workers-log2", options.max_workers_log2, "N = 2^1, 2^2 .. 2^this",
                              {.minimum = 1, .maximum = 13, .quick = 6});
             command_line.add("--scale-log2", options.scale_log2,
                              "log2 of the loss scale, beside 0; without it, that which leaves the largest "
                              "gradient of a worker an octave below 65504",
                              {.minimum = 0, .maximum = 120});
             command_line.add("--max-scale-log2", options.max_scale_log2,
                              "scales.csv runs from S = 2^0 to 2^this; without it, to four octaves beyond "
                              "what --scale-log2 is without it",
                              {.minimum = 0, .maximum = 120});
           },
       .body = [&](Run& r) { allreduce_precision::run(r, options); }});
}
