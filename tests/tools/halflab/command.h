#pragma once
/// Runs of the command halflab within the test's process.

#include <doctest/doctest.h>

#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/frame/json.h"
#include "tools/halflab/commands.h"

namespace test {

struct CommandRun {
  int exit_code;
  std::string out, err;

  /// What --json printed.
  experiments::Json json() const { return experiments::Json::from_text(out); }
};

inline CommandRun run_halflab(const std::vector<std::string>& words) {
  std::vector<const char*> arguments{"halflab"};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  std::ostringstream out, err;
  const int exit_code =
      halflab::run(static_cast<int>(arguments.size()), arguments.data(), {.out = out, .err = err});
  return {exit_code, out.str(), err.str()};
}

/// Bad usage or input: one line with the message, exit code 2, and nothing else.
inline void check_refused(const std::vector<std::string>& words, const std::string& message) {
  const CommandRun run = run_halflab(words);
  INFO(run.err);
  CHECK(run.exit_code == 2);
  CHECK(run.out == "");
  CHECK(run.err.find(message) != std::string::npos);
  CHECK(run.err.find('\n') == run.err.size() - 1);
}

}  // namespace test
