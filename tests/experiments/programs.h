#pragma once
/// The experiment binaries, run as their users do.

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/file_contents.h"

namespace programs {

struct Outcome {
  int exit_code;
  std::string output;  ///< stdout and stderr together
};

inline Outcome run_command(const std::string& command) {
  Outcome outcome{};
  FILE* pipe = ::popen((command + " 2>&1 < /dev/null").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> buffer;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.output.append(buffer.data(), n);
  outcome.exit_code = WEXITSTATUS(::pclose(pipe));
  return outcome;
}

inline Outcome run(const std::string& arguments, const std::string& wrapper = "") {
  return run_command(wrapper + HALFLAB_BINARY_DIRECTORY + "/" + arguments);
}

/// The names that `--list` prints.
inline std::vector<std::string> listed(const std::string& family) {
  std::istringstream lines(run("scaler_comparison --list " + family).output);
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) names.push_back(line.substr(0, line.find(' ')));
  REQUIRE(!names.empty());
  return names;
}

inline nlohmann::json summary_of(const std::filesystem::path& directory) {
  return nlohmann::json::parse(test::content_of(directory / "summary.json"));
}

/// A comparison of a tenth of a second.
inline const std::string small = "--model mlp:hidden1=32:hidden2=32 --steps 3 --batch 8 --seeds 1";

}  // namespace programs
