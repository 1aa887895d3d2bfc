#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>

namespace test {

/// The bytes of a file. Throws std::runtime_error where it cannot be opened.
inline std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream.is_open()) throw std::runtime_error("file '" + file.string() + "' cannot be opened");
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// All that is in a directory and below it by the path from there; the paths of directories end in '/'.
inline std::map<std::string, std::string> contents_of(const std::filesystem::path& directory) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const std::string path = entry.path().lexically_relative(directory).string();
    if (entry.is_directory()) {
      contents[path + '/'];
    } else {
      contents[path] = content_of(entry.path());
    }
  }
  return contents;
}

}  // namespace test
