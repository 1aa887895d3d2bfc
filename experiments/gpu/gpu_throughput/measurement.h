#pragma once
/// Times and rates of a group's rows.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/gpu/gpu_throughput/timed_work.h"

namespace experiments::gpu_throughput {

/// Times of the repeats of one row, each the mean time of a few calls.
struct Times {
  double median_s = 0;
  double lowest_s = 0;
  double highest_s = 0;
  std::size_t repeats = 0;
  std::size_t calls_per_repeat = 0;
};

/// Throws std::invalid_argument without times.
Times times_of(std::vector<double> times_s);

struct Row {
  std::string name;
  std::string group;
  Unit unit = Unit::bytes;
  double amount = 0;
  std::vector<Comparison> comparisons;
  std::string absent;
  std::string failure;  ///< what the runtime said when it was checked or timed
  Check check = {};
  std::optional<Times> times;

  bool failed() const { return check.wrong != 0 || !failure.empty(); }
  /// The summary's name for it: "name" or "name.group".
  std::string key() const { return group.empty() ? name : name + '.' + group; }
  /// Bytes or operations a second, by the median; 0 without times.
  double rate() const { return times ? amount / times->median_s : 0; }
};

/// How long the device takes for `calls` calls in a row, in seconds, of which `turn` is the first.
using TimeCalls = std::function<double(const Work& work, std::size_t turn, std::size_t calls)>;

/// By events on the device's default stream.
double time_on_device(const Work& work, std::size_t turn, std::size_t calls);

struct Measurement {
  int repeats = 20;
  double least_repeat_s = 2e-3;  ///< a repeat has as many calls as take so long, at most 100
  TimeCalls time_calls = time_on_device;
  std::function<bool()> time_is_up = [] { return false; };  ///< asked after each round
};

/// Checks every row, warms it up, and then times all in turns, a repeat of each in a round, so that a change of
/// the device's clock meets all of them; at least three rounds, fewer than asked for when time is up. A row
/// that is absent has neither check nor times. Rows that failed, be it while they were timed, have no times.
std::vector<Row> measure(const Group& group, const Measurement& measurement);

}  // namespace experiments::gpu_throughput
