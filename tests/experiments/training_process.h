#pragma once
/// The binary `training` in a process of its own.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/experiments/process.h"
#include "tests/file_contents.h"

namespace training {

using process::Outcome;
using process::Process;

/// A run whose output is kept in the file `out`.log.
inline Process start(const std::string& arguments, const std::filesystem::path& out) {
  return Process("training --out " + out.string() + " " + arguments, out.string() + ".log");
}

inline Outcome run(const std::string& arguments, const std::filesystem::path& out) {
  return start(arguments, out).wait();
}

inline nlohmann::json json_of(const std::filesystem::path& file) {
  return nlohmann::json::parse(test::content_of(file));
}

}  // namespace training
