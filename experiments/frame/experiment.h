#pragma once
/// The frame of an experiment binary: options in, run directory and verdict out, one line and an exit code
/// for errors.

#include <filesystem>
#include <functional>
#include <iostream>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "experiments/frame/command_line.h"
#include "experiments/frame/figure.h"
#include "experiments/frame/json.h"
#include "experiments/frame/progress.h"
#include "experiments/frame/record.h"

namespace experiments {

/// Where a program prints: the verdict and answers, and warnings, errors and the progress bar.
struct Streams {
  std::ostream& out = std::cout;
  std::ostream& err = std::cerr;
};

/// What the body of an experiment works with. Tables, summary and verdict go to the record.
class Run {
 public:
  struct Settings {
    int threads;
    std::ostream* terminal;  ///< where the progress bar goes; none without one
    std::ostream* warnings;
    std::filesystem::path out = {};  ///< what --out says
  };

  Run(RunRecord& record, Settings settings) : record_(record), settings_(settings) {}

  RunRecord& record() { return record_; }
  int threads() const { return settings_.threads; }
  /// Where --out says that results go, whether or not the record does.
  const std::filesystem::path& out() const { return settings_.out; }
  Progress progress(std::string label, std::size_t total) const {
    return Progress(std::move(label), total, settings_.terminal);
  }

  /// Draws the figure from the tables written so far and puts it into the record. Without gnuplot, or when it
  /// fails, the script is written all the same, and one line warns (about a missing gnuplot only once).
  void figure(const Figure& figure);
  /// Whether anybody will see figures: the run leaves a directory.
  bool draws() const { return record_.is_kept(); }

  /// One line on stderr; from any thread.
  void warn(const std::string& text);

  /// The thing under test failed: the results are still written, `what` becomes one line, and the exit
  /// code 1.
  void fail(std::string what) { failure_ = std::move(what); }
  const std::optional<std::string>& failure() const { return failure_; }

 private:
  RunRecord& record_;
  Settings settings_;
  std::mutex warning_;
  bool warned_about_gnuplot_ = false;
  std::optional<std::string> failure_;
};

/// Which runs leave a directory.
enum class Results {
  kept,  ///< all, in results/NAME without --out
  asked  ///< those with --out; --json prints what a run found
};

struct Experiment {
  Program program;
  std::function<void(CommandLine&)> options;  ///< binds the experiment's own options
  std::function<void(Run&)> body;
  Results results = Results::kept;
  /// Whether a run with these options is to have a record in its directory; those of which others share the directory have
  /// none. Null: it is.
  std::function<bool()> has_record = {};
  /// Writes into the staging folder of a record that has all else, its manifest included; none without.
  std::function<void(const RunRecord&)> add_page = {};
};

/// What the programs of one laboratory share and the frame does not know.
struct Laboratory {
  Families families = {};  ///< of choices and `--list`
  /// How this process computes, for the manifest; none without.
  Json (*arithmetic)() = nullptr;
};

/// Runs the experiment with --out, --threads, --quick, --quiet, --config and --list besides its own options,
/// commits its record and prints its verdict (or with --json, where results are asked for, the record). Returns the exit code: 0 done, 1 a check failed, 2 bad usage or
/// input (one line on `streams.err`, nothing written), 130 interrupted (nothing written).
int run(int argc, const char* const* argv, const Experiment& experiment, const Laboratory& laboratory,
        Streams streams = {});

/// Calls `body` and returns its exit code. An exception becomes one line after the program's name, and 2, as does a standard
/// output that cannot be written, and a mapped file that becomes shorter; Interrupted becomes 130.
int guarded(std::string_view program, std::ostream& err, const std::function<int()>& body);

}  // namespace experiments
