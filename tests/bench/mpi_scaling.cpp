/// What do real ranks cost? Two or more processes of one MPI library exchange messages, sum halves and floats, and train
/// together and each for itself: `mpirun -np 2 build/bin/mpi_scaling --mpi`.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/frame/confidence.h"
#include "experiments/frame/stopwatch.h"
#include "experiments/training/laboratory.h"
#include "experiments/training/mpi/job.h"
#include "experiments/training/network.h"
#include "fp16/bulk.h"
#include "sim/trainer/scheduled_allreduce.h"

namespace {

struct Options {
  std::string model = "transformer";
  std::string policy = "amp";
  int batch = 8;
  int steps = 5;
  int rounds = 60;
  int numbers = 10'000'000;
  bool mpi = false;
  std::string mpi_library;
  experiments::Ranks* ranks = nullptr;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

/// Seconds of a call on the slowest rank, all having begun together.
double seconds_of(sim::Exchange& exchange, const std::function<void()>& call) {
  exchange.maximum(std::vector{0.0});
  const experiments::Stopwatch watch;
  call();
  return exchange.maximum(std::vector{watch.seconds()});
}

/// One way, of a message between ranks 0 and 1.
double message_seconds(sim::Wire& wire, sim::Exchange& exchange, std::size_t bytes, int times) {
  std::vector<std::byte> message(bytes), none;
  const std::size_t other = 1 - std::min<std::size_t>(wire.rank(), 1);
  return seconds_of(exchange,
                    [&] {
                      for (int i = 0; i < times && wire.rank() < 2; ++i) {
                        if (wire.rank() == 0) wire.send_receive(message, other, none, std::nullopt);
                        wire.send_receive(none, std::nullopt, message, other);
                        if (wire.rank() == 1) wire.send_receive(message, other, none, std::nullopt);
                      }
                    }) /
         (2.0 * times);
}

/// Medians of calls that take turns.
class Timings {
 public:
  void add(const std::string& name, double seconds) { seconds_[name].push_back(seconds); }
  double of(const std::string& name) const { return median(seconds_.at(name)); }
  /// How many times as long as `second` each `first` took.
  experiments::Estimate ratio(const std::string& first, const std::string& second) const {
    std::vector<double> ratios;
    std::ranges::transform(seconds_.at(first), seconds_.at(second), std::back_inserter(ratios),
                           std::divides());
    return experiments::estimate(ratios);
  }

 private:
  std::map<std::string, std::vector<double>> seconds_;
};

/// Sums are those of AllReduce's defaults: a ring in FP16.
void time_messages(const Options& options, sim::Wire& wire, std::size_t weights, Timings& timings) {
  sim::Exchange& exchange = options.ranks->exchange();
  const auto count = static_cast<std::size_t>(options.numbers);
  std::vector<std::uint16_t> halves(count);
  std::vector<float> floats(count / 2), gradients(weights, 1.0f);
  sim::AllReduceSpace space;
  constexpr std::size_t long_message = std::size_t{1} << 24;
  for (int round = 0; round < options.rounds; ++round) {
    timings.add("latency", message_seconds(wire, exchange, 8, 1000));
    timings.add("long message", message_seconds(wire, exchange, long_message, 4));
    std::ranges::fill(halves, std::uint16_t{0x1000});
    std::ranges::fill(floats, 0x1p-20f);
    timings.add("sum of halves", seconds_of(exchange, [&] { wire.sum(halves); }));
    timings.add("sum of floats", seconds_of(exchange, [&] { wire.sum(floats); }));
    timings.add("ring", seconds_of(exchange, [&] { sim::sum_over(wire, halves, {}, space); }));
    timings.add("ring of gradients",
                seconds_of(exchange, [&] { sim::all_reduce_over(wire, gradients, {}, space); }));
    timings.add("addition", seconds_of(exchange, [&] {
                  fp16::add<fp16::binary16>(halves, halves, std::span<std::uint16_t>(halves));
                }));
  }
}

/// Steps together, and as many of each rank for itself.
void time_training(const Options& options, Timings& timings) {
  experiments::Ranks& ranks = *options.ranks;
  const auto setup_of = [&](int batch) {
    experiments::TrainingOptions training{.model = options.model};
    training.batch = batch;
    training.steps = 1'000'000;
    return training;
  };
  experiments::TrainingOptions shared = setup_of(options.batch * static_cast<int>(ranks.count()));
  experiments::TrainingOptions own = setup_of(options.batch);
  const experiments::TrainingSetup shared_setup(shared), own_setup(own);
  experiments::RunChoice choice{.policy = options.policy, .scaler = "dynamic"};
  choice.seed = ranks.rank();
  sim::Trainer alone = own_setup.trainer(choice);
  choice.seed = 0;
  choice.parallel = {.ranks = ranks.count(), .all_reduce = {}};
  choice.exchange = &ranks.exchange();
  sim::Trainer together = shared_setup.trainer(choice);
  const auto steps_of = [&](sim::Trainer& trainer) {
    return seconds_of(ranks.exchange(),
                      [&] {
                        for (int step = 0; step < options.steps; ++step) trainer.step();
                      }) /
           options.steps;
  };
  steps_of(alone);
  steps_of(together);
  for (int round = 0; round < options.rounds; ++round) {
    timings.add("step alone", steps_of(alone));
    timings.add("step together", steps_of(together));
  }
}

/// What an exchange costs: a message, and each number that a rank sends on and adds.
struct Cost {
  double latency, per_number;

  double moved(double ranks, double numbers) const { return (ranks - 1) / ranks * numbers * per_number; }
  double ring(double ranks, double numbers) const {
    return 2 * (ranks - 1) * latency + moved(ranks, numbers);
  }
  /// By Rabenseifner's.
  double halves(double ranks, double numbers) const {
    return 2 * std::ceil(std::log2(ranks)) * latency + moved(ranks, numbers);
  }
};

/// At best: by messages and additions that are timed alone.
Cost cost_of_parts(const Timings& timings, double numbers) {
  const double per_byte = timings.of("long message") / static_cast<double>(std::size_t{1} << 24);
  return {timings.of("latency"), 4 * per_byte + timings.of("addition") / numbers};
}

/// The cost of the ring that the training runs, from the time that it took.
Cost cost_of_ring(const Timings& timings, double ranks, double weights) {
  const double latency = timings.of("latency"), alone = Cost{latency, 0}.ring(ranks, weights);
  return {latency, (timings.of("ring of gradients") - alone) / Cost{0, 1}.moved(ranks, weights)};
}

/// Examples per second, as a share of those of as many runs alone, for more ranks than there are.
void report_predictions(experiments::RunRecord& record, const Timings& timings, const Cost& parts,
                        const Cost& ring, double weights) {
  const double step = timings.of("step alone");
  for (const int ranks : {2, 16, 128, 1024, 4096}) {
    record.summary(fmt::format("ratio.predicted_ring_{}", ranks), step / (step + parts.ring(ranks, weights)));
    record.summary(fmt::format("ratio.predicted_halves_{}", ranks),
                   step / (step + parts.halves(ranks, weights)));
    record.summary(fmt::format("ratio.by_measured_ring_{}", ranks),
                   step / (step + ring.ring(ranks, weights)));
  }
}

void report(experiments::RunRecord& record, const Options& options, double weights, const Timings& timings) {
  const auto numbers = static_cast<double>(options.numbers),
             ranks = static_cast<double>(options.ranks->count());
  const double per_byte = timings.of("long message") / static_cast<double>(std::size_t{1} << 24);
  const double step = timings.of("step alone");
  const Cost parts = cost_of_parts(timings, numbers), ring = cost_of_ring(timings, ranks, weights);
  const experiments::Estimate ratio = timings.ratio("step alone", "step together");
  const double slowdown = timings.of("sum of halves") / timings.of("sum of floats");
  record.summary("weights", weights);
  record.summary("time_latency_s", parts.latency);
  record.summary("rate.bytes", 1 / per_byte);
  record.summary("rate.halves_summed", numbers / timings.of("sum of halves"));
  record.summary("rate.floats_summed", numbers / 2 / timings.of("sum of floats"));
  record.summary("rate.halves_summed_by_ring", numbers / timings.of("ring"));
  record.summary("rate.gradients_summed_by_ring", weights / timings.of("ring of gradients"));
  record.summary("rate.halves_added", numbers / timings.of("addition"));
  record.summary("rate.halves_summed_at_best", numbers / parts.ring(ranks, numbers));
  record.summary("slowdown.ring_of_halves", timings.of("ring") / parts.ring(ranks, numbers));
  record.summary("slowdown.ring_to_floats", timings.of("ring") / timings.of("sum of floats"));
  record.summary("slowdown.ring", timings.of("ring of gradients") / parts.ring(ranks, weights));
  record.summary("slowdown.sum_of_halves", slowdown);
  record.summary("time_step_alone_s", step);
  record.summary("time_step_together_s", timings.of("step together"));
  record.summary("ratio.examples", ratio.mean);
  if (ratio.is_judged()) {
    record.summary("ratio.examples_lower", ratio.lower());
    record.summary("ratio.examples_upper", ratio.upper());
  }
  report_predictions(record, timings, parts, ring, weights);
  record.setting("mpi.vendor", options.ranks->carrier().vendor);
  record.setting("mpi.version", options.ranks->carrier().version);
  record.setting("mpi.hosts", options.ranks->hosts());
  record.verdict(fmt::format(
      "{} ranks of {} examples each make {} times the examples per second that as many runs make side by "
      "side, where the all-reduce of the gradients alone, as measured, lets expect {:.3g}. {} halves are "
      "summed in {:.3g} times the time of as many bytes of floats by MPI_Allreduce, and in {:.3g} times by "
      "our own ring.",
      options.ranks->count(), options.batch, experiments::with_interval(ratio, 1, 3),
      step / (step + ring.ring(ranks, weights)), options.numbers, slowdown,
      timings.of("ring") / timings.of("sum of floats")));
}

void run(experiments::Run& run, const Options& options) {
  if (!options.ranks || options.ranks->count() < 2)
    throw experiments::UsageError(
        "there is nobody to exchange with; must be started as 'mpirun -np 2 "
        "build/bin/mpi_scaling --mpi'");
  options.ranks->agree(
      {{"mpi_scaling", fmt::format("{} {} {} {} {} {}", options.model, options.policy, options.batch,
                                   options.steps, options.rounds, options.numbers)}});
  const std::size_t weights = experiments::Network({}, options.model).weights();
  Timings timings;
  time_messages(options, options.ranks->wire(), weights, timings);
  time_training(options, timings);
  options.ranks->set_trained();
  if (options.ranks->is_first()) report(run.record(), options, static_cast<double>(weights), timings);
}

void bind(experiments::CommandLine& command_line, Options& options) {
  command_line.add_choice("--model", options.model, "models", "what is trained");
  command_line.add_choice("--policy", options.policy, "policies", "precision policy");
  command_line.add("--batch", options.batch, "examples of a rank", {.minimum = 1, .maximum = 4096});
  command_line.add("--steps", options.steps, "steps of a round",
                   {.minimum = 1, .maximum = 10000, .quick = 2});
  command_line.add("--rounds", options.rounds, "measurements, of which medians and means count",
                   {.minimum = 1, .maximum = 1000, .quick = 1});
  command_line.add("--numbers", options.numbers, "halves of an all-reduce",
                   {.minimum = 2, .maximum = 1'000'000'000, .quick = 100'000});
  command_line.add_flag("--mpi", options.mpi, "each rank is a process that mpirun started");
  command_line.add("--mpi-library", options.mpi_library, "openmpi or mpich; default: the launcher's", "NAME");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const experiments::Experiment experiment{
      .program = {.name = "mpi_scaling",
                  .question = "What do real ranks cost?",
                  .example = "mpirun -np 2 build/bin/mpi_scaling --mpi"},
      .options = [&](experiments::CommandLine& command_line) { bind(command_line, options); },
      .body = [&](experiments::Run& r) { run(r, options); },
      .has_record = [&] { return options.ranks && options.ranks->is_first(); }};
  return experiments::run_on_ranks("mpi_scaling", argc, argv, [&](auto* ranks, experiments::Streams streams) {
    options.ranks = ranks;
    return experiments::run(argc, argv, experiment, streams);
  });
}
