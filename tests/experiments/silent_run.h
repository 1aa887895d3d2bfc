#pragma once
/// The Run of an experiment's body without a program around it.

#include <sstream>

#include "experiments/frame/experiment.h"
#include "experiments/frame/record.h"
#include "tests/temporary_directory.h"

namespace test {

/// A Run that shows nothing, for its threads.
struct SilentRun {
  explicit SilentRun(int threads = 1)
      : record(directory / "run"),
        run(record, {.threads = threads, .terminal = nullptr, .warnings = &warnings}) {}

  TemporaryDirectory directory;
  std::ostringstream warnings;
  experiments::RunRecord record;
  experiments::Run run;
};

}  // namespace test
