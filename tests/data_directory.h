#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace test {

/// Where real data lie, as HALFLAB_DATA_DIR says; none where it is not set, or empty.
inline std::optional<std::filesystem::path> data_directory() {
  const char* const directory = std::getenv("HALFLAB_DATA_DIR");
  if (directory == nullptr || *directory == '\0') return std::nullopt;
  return directory;
}

/// A folder of them; without HALFLAB_DATA_DIR the test says that it is skipped.
inline std::optional<std::filesystem::path> data_folder(const char* name) {
  const std::optional<std::filesystem::path> root = data_directory();
  if (!root) {
    MESSAGE("skipped: HALFLAB_DATA_DIR is not set");
    return std::nullopt;
  }
  return *root / name;
}

}  // namespace test
