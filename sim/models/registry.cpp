#include "sim/registry.h"

#include <array>

#include "sim/models/registry.h"

namespace sim {
namespace {

constexpr std::array rows{
    ModelRow{.name = "mlp",
             .description = "classifier inputs-256-256-classes with ReLU and softmax cross entropy",
             .optimizer = "momentum",
             .learning_rate = 0.05,
             .batch = 128,
             .make = make_mlp},
    ModelRow{
        .name = "autoencoder",
        .description = "deep autoencoder inputs-256-64-16-64-256-inputs with sigmoids and mean squared error",
        .optimizer = "adam",
        .learning_rate = 0.01,
        .batch = 512,
        .make = make_autoencoder},
    ModelRow{.name = "cnn",
             .description =
                 "classifier with two 3x3 convolutions, each with ReLU and max pooling, and a linear layer",
             .optimizer = "momentum",
             .learning_rate = 0.02,
             .batch = 64,
             .make = make_cnn},
};
static_assert(has_unique_names(rows));

}  // namespace

std::span<const ModelRow> models() {
  return rows;
}

const ModelRow& find_model(std::string_view name) {
  return find_by_name(models(), "model", name);
}

}  // namespace sim
