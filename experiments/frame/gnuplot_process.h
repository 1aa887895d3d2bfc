#pragma once
/// Gnuplot as a child process, with a limit of time.

#include <filesystem>
#include <string>

namespace experiments {

/// How a child ended.
struct ChildResult {
  int spawn_error = 0;  ///< an errno; 0 where it was started
  int status = 0;       ///< as waitpid() tells it
  std::string err;      ///< what it wrote to its standard error
  bool timed_out = false;
};

/// Runs `gnuplot -d <script>` in `directory`, found on PATH, without a shell; -d: without the user's own
/// start-up file. Ends it where it takes longer than the limit or the run is interrupted.
ChildResult run_gnuplot(const std::string& script, const std::filesystem::path& directory,
                        double time_limit_s);

}  // namespace experiments
