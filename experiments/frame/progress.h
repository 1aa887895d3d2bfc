#pragma once
/// A progress bar on a terminal.

#include <atomic>
#include <cstddef>
#include <mutex>
#include <ostream>
#include <string>

#include "experiments/frame/stopwatch.h"

namespace experiments {

/// One line without a line end: bar, percentage, remaining time (in proportion to the time so far), label. It is
/// shorter than `columns`, so that no terminal wraps it: first the bar gives way, then the end of the line.
std::string progress_line(const std::string& label, double fraction_done, double elapsed_s,
                          std::size_t columns = 80);

/// Counts the steps of a run, from any thread, and draws a bar once the run has lasted two seconds.
/// The bar vanishes with the object, and is never wider than the terminal.
class Progress {
 public:
  /// `terminal` is where the bar is drawn; none without one.
  Progress(std::string label, std::size_t total, std::ostream* terminal);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Throws Interrupted when Ctrl-C was pressed; so every loop of a run calls it.
  void tick(std::size_t steps = 1);

 private:
  void draw(std::size_t done);

  const std::string label_;
  const std::size_t total_;
  std::ostream* const terminal_;
  const Stopwatch stopwatch_;
  std::atomic<std::size_t> done_ = 0;
  std::mutex drawing_;
  double next_drawing_s_;
  bool drawn_ = false;
};

}  // namespace experiments
