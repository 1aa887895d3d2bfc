#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace experiments {

/// A key of a TOML file, with the names of its tables before it ("training.steps"), and its value as one would
/// write it on the command line: without quotation marks, the elements of an array with commas between them.
struct ConfigEntry {
  std::string key;
  std::string value;
  std::size_t line = 0;  ///< from 1
};

/// All entries in the order of the file. Throws as read_toml_file() does.
std::vector<ConfigEntry> read_config_file(const std::string& file);

}  // namespace experiments
