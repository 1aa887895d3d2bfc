#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "sim/data/dataset.h"

namespace sim {

/// What a model wants to be trained on.
struct DataRequest {
  DataKind kind = DataKind::images;
  std::size_t context = 64;  ///< text: tokens a window
};

/// Data that need no file.
struct DataSource {
  std::string_view name;
  std::optional<DataKind> kind;  ///< none: whichever is asked for
  std::string_view description;
  std::unique_ptr<Dataset> (*load)(const DataRequest& request);
};

/// Every data source: builtin, which stands for the one of the kind that is asked for, digits, text, scenes.
std::span<const DataSource> data_sources();

/// The data source of that name, or else, for images, the IDX files of the directory of that name
/// (`read_idx_directory`) and, for text, the file of that name or the only .txt file in the directory of that
/// name (`read_text`).
/// Throws std::invalid_argument, naming what is allowed, when it is neither or holds another kind than asked
/// for; std::runtime_error for a bad file.
std::unique_ptr<Dataset> load_dataset(std::string_view source, const DataRequest& request = {});

}  // namespace sim
