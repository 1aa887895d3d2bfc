#pragma once

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

}  // namespace test
