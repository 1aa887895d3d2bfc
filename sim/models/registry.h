#pragma once
/// The networks by name; a new one is a file and a row in registry.cpp.

#include <memory>
#include <span>
#include <string_view>

#include "fp16/names.h"
#include "sim/models/model.h"

namespace sim {

/// A row of the registry. Optimizer, learning rate, schedule, batch and steps are what the model trains well
/// with.
struct ModelRow {
  std::string_view name;
  std::string_view description;
  DataKind data;
  std::string_view optimizer;
  double learning_rate;
  std::string_view schedule;  ///< with its options: "cosine:warmup_steps=50"
  int batch;
  int steps;  ///< enough to see it learn
  /// Throws std::invalid_argument when the data does not suit the model, or for an unknown or impossible
  /// option.
  std::unique_ptr<Model> (*make)(const Dataset& dataset, const names::GivenOptions& options);
  /// The options in force: names and values, defaults where nothing is given.
  names::NamedValues (*options)(const names::GivenOptions& given);
};

std::span<const ModelRow> models();

/// Throws std::invalid_argument, naming the known ones, for an unknown name.
const ModelRow& find_model(std::string_view name);

struct MlpOptions {
  int hidden1 = 512;
  int hidden2 = 256;

  static constexpr std::string_view subject = "model 'mlp'";
  static void visit(auto& self, auto&& field) {
    field("hidden1", self.hidden1, names::closed_interval(1, 1 << 16));
    field("hidden2", self.hidden2, names::closed_interval(1, 1 << 16));
  }
};

struct AutoencoderOptions {
  int width = 256;  ///< of the outer hidden layers; the next are a quarter, the code a sixteenth of it

  static constexpr std::string_view subject = "model 'autoencoder'";
  static void visit(auto& self, auto&& field) {
    field("width", self.width, names::closed_interval(16, 1 << 16));
  }
};

struct CnnOptions {
  int channels = 16;  ///< of the first convolution; the later ones have two and four times as many

  static constexpr std::string_view subject = "model 'cnn'";
  static void visit(auto& self, auto&& field) {
    field("channels", self.channels, names::closed_interval(1, 4096));
  }
};

struct SsdOptions {
  /// What the loss is divided by in training; learning rate and weight decay have to follow.
  enum Normaliser { by_positives, by_anchors, by_values };

  int channels = 16;  ///< of the first pair of convolutions; the later pairs have two and four times as many
  int anchors = 4;    ///< per cell, up to 6
  int normaliser = by_values;

  static constexpr std::string_view subject = "model 'ssd'";
  static void visit(auto& self, auto&& field) {
    field("channels", self.channels, names::closed_interval(1, 4096));
    field("anchors", self.anchors, names::closed_interval(1, 6));
    field("normaliser", self.normaliser, names::closed_interval(by_positives, by_values));
  }
};

struct TransformerOptions {
  int layers = 4;
  int width = 128;
  int heads = 4;
  double dropout = 0;  ///< of the embedding and of every branch of a residual

  static constexpr std::string_view subject = "model 'transformer'";
  static void visit(auto& self, auto&& field) {
    field("layers", self.layers, names::closed_interval(1, 1024));
    field("width", self.width, names::closed_interval(1, 1 << 16));
    field("heads", self.heads, names::closed_interval(1, 1024));
    field("dropout", self.dropout, names::Interval{.lower = 0, .upper = 1, .includes_lower = true});
  }
};

struct LstmOptions {
  int layers = 2;
  int width = 128;

  static constexpr std::string_view subject = "model 'lstm'";
  static void visit(auto& self, auto&& field) {
    field("layers", self.layers, names::closed_interval(1, 1024));
    field("width", self.width, names::closed_interval(1, 1 << 16));
  }
};

std::unique_ptr<Model> make_mlp(const Dataset& dataset, const MlpOptions& options);
std::unique_ptr<Model> make_autoencoder(const Dataset& dataset, const AutoencoderOptions& options);
std::unique_ptr<Model> make_cnn(const Dataset& dataset, const CnnOptions& options);
std::unique_ptr<Model> make_ssd(const Dataset& dataset, const SsdOptions& options);
std::unique_ptr<Model> make_transformer(const Dataset& dataset, const TransformerOptions& options);
std::unique_ptr<Model> make_lstm(const Dataset& dataset, const LstmOptions& options);

}  // namespace sim
