#pragma once
/// The binary `training` in a process of its own.

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

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

using Files = std::map<std::string, std::string>;

/// All files of a run but its manifests, which alone tell times.
inline Files results_of(const std::filesystem::path& directory) {
  Files files = test::contents_of(directory);
  std::erase_if(files, [](const auto& file) {
    return file.first.ends_with('/') || std::filesystem::path(file.first).filename() == "manifest.json";
  });
  return files;
}

inline std::vector<std::string> names_of(const Files& files) {
  std::vector<std::string> names;
  for (const auto& [name, content] : files) names.push_back(name);
  return names;
}

/// Equal names first, so that a failure says which file.
inline void check_equal(const Files& a, const Files& b) {
  CHECK(names_of(a) == names_of(b));
  for (const auto& [name, content] : a) {
    INFO(name);
    CHECK((b.contains(name) && b.at(name) == content));
  }
}

}  // namespace training
