#pragma once
/// The subcommands of halflab. A new one is one folder and one row of commands.cpp.

#include <span>
#include <string_view>

#include "experiments/frame/experiment.h"

namespace halflab {

struct Command {
  std::string_view name;
  std::string_view question;  ///< for the list of commands
  /// Runs it; argv[0] is its name. Returns the exit code.
  int (*run)(int argc, const char* const* argv, experiments::Streams streams);
};

std::span<const Command> commands();

/// Runs `halflab NAME ...`. Returns the exit code of the command; 2 for a name that is none.
int run(int argc, const char* const* argv, experiments::Streams streams = {});

}  // namespace halflab
