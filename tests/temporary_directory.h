#pragma once

#include <errno.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace test {

/// An empty directory that no other process or object has, removed with all that is in it at the end of its
/// scope.
class TemporaryDirectory {
 public:
  /// Throws std::system_error where none can be made.
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "halflab-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw std::system_error(errno, std::generic_category(), "temporary directory '" + name + "'");
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;  // a destructor must not throw
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace test
