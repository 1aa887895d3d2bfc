#pragma once
/// Long checks, cut into shards that run on all hardware threads. A sweep that was killed goes on where it
/// stopped: finished shards stand in a file, and only another build of the program, or another kind of
/// processor, has to start again.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace oracle {

/// What came out of one shard, or of all of them together.
struct Checked {
  std::uint64_t inputs = 0;
  double seconds = 0;      ///< of one processor; filled in by the sweep
  double largest = 0;      ///< of whatever the sweep measures, such as an error
  std::string difference;  ///< operands, got and expected of the first mismatch; empty: there is none

  Checked& operator+=(const Checked& other);
};

struct Sweep {
  std::string name;  ///< also of its file
  std::uint64_t shards;
  std::uint64_t inputs;                             ///< how many all shards have together
  std::function<Checked(std::uint64_t shard)> run;  ///< called from many threads
};

/// Where finished shards are recorded, and which shards run: those with shard % parts == part.
struct SweepOptions {
  std::filesystem::path directory;
  std::uint64_t part = 0, parts = 1;
};

/// From the environment: HALFLAB_SWEEP_DIR (default: `sweeps` beside the program), and HALFLAB_SWEEP_SHARDS
/// as "part/parts", such as 0/64 for a quick sample. Throws std::invalid_argument for anything else.
SweepOptions sweep_options();

/// Runs the shards that are not recorded yet, and records each that has no difference; starts no more after a
/// difference. An exception of `run` counts as a difference. Writes its progress to standard error, if that
/// is a terminal. Throws std::runtime_error where it cannot write.
Checked run_sweep(const Sweep& sweep, const SweepOptions& options);

/// A sweep with `sweep_options`, as part of a test case: fails it if there is a difference or, unless only a
/// part was run, if the number of inputs is not the one expected.
Checked check_sweep(const Sweep& sweep);

}  // namespace oracle
