#pragma once

#include <span>
#include <string_view>

#include "sim/data/dataset.h"

namespace sim {

/// A data set that needs no file.
struct DataSource {
  std::string_view name;
  std::string_view description;
  Dataset (*load)();
};

/// Every data source, by name: builtin.
std::span<const DataSource> data_sources();

/// The data source of that name, or else the IDX files of the directory of that name (`read_idx_directory`).
/// Throws std::invalid_argument, naming the known sources, when it is neither; std::runtime_error for a bad
/// file.
Dataset load_dataset(std::string_view source_or_directory);

}  // namespace sim
