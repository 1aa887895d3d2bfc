#pragma once
/// The networks by name; a new one is a file and a row in registry.cpp.

#include <memory>
#include <span>
#include <string_view>

#include "sim/models/model.h"

namespace sim {

/// A row of the registry. `learning_rate`, `batch` and `optimizer` are what the model trains well with.
struct ModelRow {
  std::string_view name;
  std::string_view description;
  std::string_view optimizer;
  double learning_rate;
  int batch;
  /// Throws std::invalid_argument when the data does not suit the model.
  std::unique_ptr<Model> (*make)(const Dataset& dataset);
};

std::span<const ModelRow> models();

/// Throws std::invalid_argument, naming the known ones, for an unknown name.
const ModelRow& find_model(std::string_view name);

std::unique_ptr<Model> make_mlp(const Dataset& dataset);
std::unique_ptr<Model> make_autoencoder(const Dataset& dataset);
std::unique_ptr<Model> make_cnn(const Dataset& dataset);

}  // namespace sim
