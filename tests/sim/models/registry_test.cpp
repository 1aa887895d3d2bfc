#include "sim/models/registry.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "tests/sim/training_runs.h"

namespace {

using training_runs::data_of;

/// 65 different bytes, windows of 64.
const sim::Dataset& text_of_65_tokens() {
  static const sim::TextDataset text = [] {
    std::string bytes;
    for (int i = 0; i < 1300; ++i) bytes += static_cast<char>('0' + i % 65);
    return sim::TextDataset({.name = "bytes", .text = bytes, .context = 64});
  }();
  return text;
}

std::size_t parameter_count(const sim::Model& model) {
  std::size_t count = 0;
  for (const sim::ParameterSpec& spec : model.parameters()) count += sim::element_count(spec.shape);
  return count;
}

std::unique_ptr<sim::Model> make(std::string_view name, const sim::Dataset& data,
                                 const names::GivenOptions& options = {}) {
  return sim::find_model(name).make(data, options);
}

}  // namespace

TEST_CASE("models: as many parameters as the architecture has") {
  // Weights and biases layer by layer.
  const std::map<std::string, std::size_t> counts{
      {"mlp", 784 * 512 + 512 + 512 * 256 + 256 + 256 * 10 + 10},
      {"autoencoder", 200960 + 16448 + 1040 + 1088 + 16640 + 201488},
      {"cnn", (144 + 4608 + 9216 + 18432) + 2 * (16 + 32 + 32 + 64) + 650},
      {"ssd", (448 + 2320) + (4640 + 9248) + (18496 + 36928) + 4 * 36928 + 4 * 9232},
      {"transformer", 818176},  // 4 x 128, context 64, 65 tokens
      {"lstm", 65 * 128 + 2 * (512 * 256 + 512) + 65 * 128 + 65},
  };
  for (const sim::ModelRow& row : sim::models()) {
    INFO(row.name);
    const sim::Dataset& data = row.data == sim::DataKind::text ? text_of_65_tokens() : data_of(row.data);
    REQUIRE(counts.contains(std::string(row.name)));
    CHECK(parameter_count(*row.make(data, {})) == counts.at(std::string(row.name)));
  }
  CHECK(parameter_count(*make("mlp", data_of(sim::DataKind::images), {{"hidden1", 3}, {"hidden2", 2}})) ==
        784 * 3 + 3 + 3 * 2 + 2 + 2 * 10 + 10);
  CHECK(parameter_count(*make("transformer", text_of_65_tokens(),
                              {{"layers", 1}, {"width", 8}, {"heads", 2}, {"dropout", 0.5}})) ==
        65 * 8 + 64 * 8 + (2 * 16 + 4 * 72 + 8 * 32 + 32 + 32 * 8 + 8) + 16 + 65 * 8);
  CHECK(parameter_count(*make("lstm", text_of_65_tokens(), {{"layers", 1}, {"width", 4}})) ==
        65 * 4 + 16 * 8 + 16 + 65 * 4 + 65);
  CHECK(parameter_count(*make("ssd", data_of(sim::DataKind::scenes), {{"channels", 1}, {"anchors", 1}})) ==
        (28 + 10) + (20 + 38) + (76 + 148) + 4 * 148 + 2 * 2 * (4 * 37));
}

TEST_CASE("models: rows hold options, optimizers and schedules that exist, parameters have unique names") {
  for (const sim::ModelRow& row : sim::models()) {
    INFO(row.name);
    CHECK(!row.description.empty());
    CHECK(row.learning_rate > 0);
    CHECK(row.batch > 0);
    CHECK(row.steps > 0);
    const auto [optimizer, optimizer_options] = names::parse_numeric_spec(row.optimizer);
    CHECK(sim::make_optimizer(optimizer, optimizer_options)->name() == optimizer);
    const auto [schedule, schedule_options] = names::parse_numeric_spec(row.schedule);
    CHECK(sim::make_schedule(schedule, schedule_options)->name() == schedule);
    CHECK(!row.options({}).empty());

    const std::unique_ptr<sim::Model> model = row.make(data_of(row.data), {});
    CHECK(model->is_classifier() == (row.name != "autoencoder"));
    std::set<std::string> names;
    for (const sim::ParameterSpec& spec : model->parameters()) names.insert(spec.name);
    CHECK(names.size() == model->parameters().size());
  }
  CHECK(sim::find_model("mlp").options({{"hidden2", 7}}) ==
        names::NamedValues{{"hidden1", 512}, {"hidden2", 7}});
  CHECK_THROWS_WITH_AS(sim::find_model("mpl"), doctest::Contains("did you mean 'mlp'?"),
                       std::invalid_argument);
}

TEST_CASE("models: options and data that do not suit are refused by name") {
  const sim::Dataset &images = data_of(sim::DataKind::images), &text = data_of(sim::DataKind::text),
                     &scenes = data_of(sim::DataKind::scenes);
  const struct {
    const char* model;
    const sim::Dataset& data;
    names::GivenOptions options;
    const char* message;
  } rows[]{
      {"mlp", images, {{"hidden1", 0}}, "model 'mlp': hidden1 = 0 is not allowed"},
      {"mlp", images, {{"hidden1", 2.5}}, "hidden1 = 2.5 is not allowed; allowed: whole numbers"},
      {"mlp", images, {{"hidden", 2}}, "unknown option 'hidden'; did you mean 'hidden1'?"},
      {"autoencoder", images, {{"width", 15}}, "width = 15 is not allowed; allowed: whole numbers in [16,"},
      {"cnn", images, {{"channels", 0}}, "channels = 0 is not allowed"},
      {"ssd", scenes, {{"anchors", 7}}, "anchors = 7 is not allowed; allowed: whole numbers in [1, 6]"},
      {"ssd", scenes, {{"normaliser", 3}}, "normaliser = 3 is not allowed"},
      {"transformer",
       text,
       {{"heads", 3}},
       "model 'transformer': width = 128 is not allowed; allowed: multiples of heads = 3"},
      {"transformer", text, {{"dropout", 1}}, "dropout = 1 is not allowed; allowed: numbers in [0, 1)"},
      {"lstm", text, {{"layers", 0}}, "layers = 0 is not allowed"},
      {"mlp", text, {}, "mlp"},
      {"transformer", images, {}, "transformer"},
      {"lstm", scenes, {}, "lstm"},
      {"ssd", images, {}, "ssd"},
  };
  for (const auto& [model, data, options, message] : rows) {
    INFO(model, ": ", message);
    CHECK_THROWS_WITH_AS(make(model, data, options), doctest::Contains(message), std::invalid_argument);
  }
  const sim::ImageDataset tiny({.name = "tiny",
                                .image_shape = {.height = 3, .width = 5},
                                .classes = 2,
                                .training = {std::vector<std::uint8_t>(15), {0}},
                                .test = {std::vector<std::uint8_t>(15), {1}}});
  CHECK_THROWS_WITH_AS(make("cnn", tiny), doctest::Contains("at least 4x4 are needed"),
                       std::invalid_argument);
  CHECK(parameter_count(*make("mlp", tiny, {{"hidden1", 1}, {"hidden2", 1}})) == 16 + 2 + 4);
}

TEST_CASE("models: weights begin as their rule says, keyed by seed and name") {
  const std::vector<sim::ParameterSpec> specs = [] {
    sim::ParameterList list;
    list.add_layer("he", {300, 100}, sim::WeightInitialisation::he_uniform);
    list.add_layer("torch", {300, 100}, sim::WeightInitialisation::torch_default);
    list.add_layer("normal", {300, 10, 3, 3}, sim::WeightInitialisation::he_normal);
    list.add_layer_without_bias("bare", {20, 100}, sim::WeightInitialisation::torch_default);
    list.add_layer_norm("norm", 7);
    list.add_batch_norm("batch", 5);
    return std::move(list).specs();
  }();
  const std::vector<sim::Tensor> weights = sim::initial_values(specs, 1);
  const auto of = [&](std::string_view name) {
    const auto found = std::ranges::find(specs, name, &sim::ParameterSpec::name);
    REQUIRE(found != specs.end());
    return weights[static_cast<std::size_t>(found - specs.begin())].to_floats();
  };
  const auto largest = [](const std::vector<float>& values) {
    float result = 0;
    for (const float v : values) result = std::max(result, std::abs(v));
    return result;
  };
  const auto deviation = [](const std::vector<float>& values) {
    double square = 0;
    for (const float v : values) square += double{v} * v;
    return std::sqrt(square / static_cast<double>(values.size()));
  };
  // 30,000 uniform numbers: none above the bound, and the largest within 0.1 % of it: by chance it is not
  // with a probability of (1 - 0.001)^30000 = e^-30.
  for (const auto& [name, bound] : {std::pair{"he.weight", std::sqrt(6.0f / 100)}, {"torch.weight", 0.1f}}) {
    INFO(name);
    CHECK(largest(of(name)) <= bound);
    CHECK(largest(of(name)) > 0.999f * bound);
    CHECK(deviation(of(name)) == doctest::Approx(bound / std::sqrt(3.0)).epsilon(0.03));
  }
  CHECK(largest(of("he.bias")) == 0);
  CHECK(largest(of("torch.bias")) <= 0.1f);
  CHECK(largest(of("torch.bias")) > 0.05f);
  // The deviation of 27,000 normal numbers is within 3 % of theirs but for 7 sigma.
  CHECK(deviation(of("normal.weight")) == doctest::Approx(std::sqrt(2.0 / 90)).epsilon(0.03));
  CHECK(largest(of("normal.weight")) > 3 * std::sqrt(2.0f / 90));
  CHECK(largest(of("normal.bias")) == 0);
  for (const char* norm : {"norm", "batch"}) {
    CHECK(std::ranges::all_of(of(std::string(norm) + ".weight"), [](float w) { return w == 1; }));
    CHECK(largest(of(std::string(norm) + ".bias")) == 0);
  }
  for (const sim::ParameterSpec& spec : specs) CHECK(spec.of_batch_norm == spec.name.starts_with("batch."));

  CHECK(sim::initial_values(specs, 1)[0].to_floats() == of("he.weight"));
  CHECK(sim::initial_values(specs, 2)[0].to_floats() != of("he.weight"));
  // Another layer before it changes nothing: the key is the name.
  CHECK(sim::initial_values(std::span(specs).subspan(2, 1), 1)[0].to_floats() == of("torch.weight"));
}

TEST_CASE("models: the score counts the first largest logit, and leaves out rows without a label") {
  const sim::Tensor logits = tensor_of({4, 3}, {1, 2, 2, 5, 0, 0, 0, 0, 7, -1, -2, -1});
  const std::vector<std::int32_t> labels{1, 2, -1, 0};
  const sim::Score score = sim::score_rows(logits, labels);
  CHECK(score.correct == 2);
  CHECK(score.predictions == 3);
  CHECK(score.accuracy() == 2.0 / 3);
  CHECK(sim::Score{}.accuracy() == 0);
}
