#pragma once
/// Another program as a child process, with a limit of time.

#include <filesystem>
#include <string>
#include <vector>

namespace experiments {

/// How a child ended.
struct ChildResult {
  int spawn_error = 0;  ///< an errno; 0 where it was started
  int status = 0;       ///< as waitpid() tells it
  std::string err;      ///< what it wrote to its standard error
  bool timed_out = false;
};

/// What a child is to be.
struct Child {
  std::vector<std::string> words;  ///< the program, found on PATH where it names no folder, and its arguments
  std::filesystem::path directory;  ///< that it works in
  double time_limit_s;
  std::vector<std::string> variables = {};  ///< "NAME=value", in the place of the environment's own
};

/// Runs the child without a shell, and passes over its standard output. Ends it where it takes longer than the limit or the
/// run is interrupted.
ChildResult run_child(const Child& child);

/// "was ended by signal 9", "ended with exit code 1".
std::string how_it_ended(const ChildResult& result);

}  // namespace experiments
