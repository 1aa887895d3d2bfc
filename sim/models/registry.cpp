#include "sim/models/registry.h"

#include <array>

#include "fp16/names.h"

namespace sim {
namespace {

template <class Options, std::unique_ptr<Model> (*make_model)(const Dataset&, const Options&)>
std::unique_ptr<Model> make(const Dataset& dataset, const names::GivenOptions& given) {
  return make_model(dataset, names::options_from<Options>(given));
}

template <class Options>
names::NamedValues options(const names::GivenOptions& given) {
  return names::named_values(names::options_from<Options>(given));
}

constexpr std::array rows{
    ModelRow{.name = "mlp",
             .description = "classifier inputs-512-256-classes with ReLU and softmax cross entropy",
             .data = DataKind::images,
             .optimizer = "momentum",
             .learning_rate = 0.05,
             .schedule = "constant",
             .batch = 128,
             .steps = 500,
             .make = make<MlpOptions, make_mlp>,
             .options = options<MlpOptions>},
    ModelRow{
        .name = "autoencoder",
        .description = "deep autoencoder inputs-256-64-16-64-256-inputs with sigmoids and mean squared error",
        .data = DataKind::images,
        .optimizer = "adam",
        .learning_rate = 0.01,
        .schedule = "constant",
        .batch = 512,
        .steps = 500,
        .make = make<AutoencoderOptions, make_autoencoder>,
        .options = options<AutoencoderOptions>},
    ModelRow{.name = "cnn",
             .description = "residual classifier: 3x3 convolutions with batch norm and ReLU, global average",
             .data = DataKind::images,
             .optimizer = "momentum",
             .learning_rate = 0.05,
             .schedule = "linear",
             .batch = 64,
             .steps = 375,
             .make = make<CnnOptions, make_cnn>,
             .options = options<CnnOptions>},
    ModelRow{.name = "ssd",
             .description = "detector: ten 3x3 convolutions, two maps of anchors, hard negative mining",
             .data = DataKind::scenes,
             .optimizer = "momentum:weight_decay=7e-7",
             .learning_rate = 12,
             .schedule = "linear:warmup_steps=50:final_factor=0.02",
             .batch = 16,
             .steps = 500,
             .make = make<SsdOptions, make_ssd>,
             .options = options<SsdOptions>},
    ModelRow{.name = "transformer",
             .description = "causal character model: pre-norm attention and GELU blocks, untied output",
             .data = DataKind::text,
             .optimizer = "adamw",
             .learning_rate = 0.001,
             .schedule = "constant:warmup_steps=50",
             .batch = 16,
             .steps = 500,
             .make = make<TransformerOptions, make_transformer>,
             .options = options<TransformerOptions>},
    ModelRow{.name = "lstm",
             .description = "character model of stacked LSTM layers",
             .data = DataKind::text,
             .optimizer = "adam",
             .learning_rate = 0.002,
             .schedule = "constant",
             .batch = 16,
             .steps = 500,
             .make = make<LstmOptions, make_lstm>,
             .options = options<LstmOptions>},
};
static_assert(names::has_unique_names(rows));

}  // namespace

std::span<const ModelRow> models() {
  return rows;
}

const ModelRow& find_model(std::string_view name) {
  return names::find_by_name(models(), "model", name);
}

}  // namespace sim
