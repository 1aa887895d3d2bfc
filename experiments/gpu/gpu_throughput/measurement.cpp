#include "experiments/gpu/gpu_throughput/measurement.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "experiments/frame/interrupt.h"
#include "fp16/cuda/device_memory.h"

namespace experiments::gpu_throughput {
namespace {

constexpr std::size_t warm_up_calls = 3;
constexpr int least_rounds = 3;

/// A row that runs.
struct Runner {
  const Work* work;
  Row* row;
  std::size_t calls = 0;
  std::size_t turn = 0;
  std::vector<double> times_s;
  bool may_go_on = true;

  double time(const Measurement& measurement, std::size_t count) {
    const double total_s = measurement.time_calls(*work, turn, count);
    turn += count;
    return total_s / static_cast<double>(count);
  }

  void warm_up(const Measurement& measurement) {
    time(measurement, 1);  // loads the kernel
    const double one_s = time(measurement, warm_up_calls);
    constexpr double most_calls = 100;
    calls = static_cast<std::size_t>(
        one_s > 0 ? std::clamp(std::ceil(measurement.least_repeat_s / one_s), 1.0, most_calls) : most_calls);
  }
};

Row row_of(const Group& group, const Work& work) {
  return {.name = work.name,
          .group = group.name,
          .unit = work.unit,
          .amount = work.amount,
          .comparisons = work.comparisons,
          .absent = work.absent};
}

/// Does something with a row; whether it was done and nothing was found to be wrong. What a kernel's fault leaves of
/// the device answers all later calls with it.
template <typename Body>
bool attempt(Runner& runner, Body body) {
  Row& row = *runner.row;
  throw_if_interrupted();
  try {
    body();
  } catch (const Interrupted&) {
    throw;
  } catch (const std::runtime_error& error) {
    (runner.work->is_peer ? row.absent : row.failure) = error.what();
    row.check = {};
  }
  return row.check.compared != 0 && !row.failed();
}

/// Checks and warms up a row; whether it may be timed.
bool prepare(Runner& runner, const Measurement& measurement) {
  if (!runner.row->absent.empty()) return false;
  return attempt(runner, [&] {
    runner.row->check = runner.work->check();
    if (!runner.row->failed()) runner.warm_up(measurement);
  });
}

void time_once(Runner& runner, const Measurement& measurement) {
  runner.may_go_on =
      attempt(runner, [&] { runner.times_s.push_back(runner.time(measurement, runner.calls)); });
}

}  // namespace

Times times_of(std::vector<double> times_s) {
  if (times_s.empty()) throw std::invalid_argument("times: there are none");
  std::ranges::sort(times_s);
  const std::size_t half = times_s.size() / 2;
  return {.median_s = times_s.size() % 2 == 1 ? times_s[half] : (times_s[half - 1] + times_s[half]) / 2,
          .lowest_s = times_s.front(),
          .highest_s = times_s.back(),
          .repeats = times_s.size()};
}

double time_on_device(const Work& work, std::size_t turn, std::size_t calls) {
  constexpr double milli = 1e-3;
  fp16::cuda::EventTimer timer;
  for (std::size_t call = 0; call < calls; ++call) work.call(turn + call);
  return milli * timer.milliseconds();
}

std::vector<Row> measure(const Group& group, const Measurement& measurement) {
  std::vector<Row> rows;
  for (const Work& work : group.works) rows.push_back(row_of(group, work));
  std::vector<Runner> runners;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Runner runner{.work = &group.works[i], .row = &rows[i]};
    if (prepare(runner, measurement)) runners.push_back(std::move(runner));
  }
  for (int round = 0; round < measurement.repeats; ++round) {
    if (round >= least_rounds && measurement.time_is_up()) break;
    for (Runner& runner : runners) time_once(runner, measurement);
    std::erase_if(runners, [](const Runner& runner) { return !runner.may_go_on; });
  }
  for (Runner& runner : runners) {
    runner.row->times = times_of(std::move(runner.times_s));
    runner.row->times->calls_per_repeat = runner.calls;
  }
  return rows;
}

}  // namespace experiments::gpu_throughput
