#include "sim/data/registry.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "fp16/names.h"
#include "tests/temporary_directory.h"

namespace sim {
namespace {

using test::TemporaryDirectory;

constexpr DataKind kinds[]{DataKind::images, DataKind::text, DataKind::scenes};

/// What must hold for every data set of its kind.
void check_usable(const Dataset& dataset, const Batch& batch) {
  const auto are_within = [](const std::vector<std::int32_t>& values, std::size_t end) {
    return std::ranges::all_of(values, [&](auto value) { return 0 <= value && std::cmp_less(value, end); });
  };
  CHECK(dataset.test_size() >= 1);
  CHECK(dataset.epoch_size() >= 1);
  CHECK(dataset.test_batch(0, dataset.test_size()).size == dataset.test_size());
  CHECK(batch.size == 100);
  CHECK(std::ranges::all_of(batch.inputs, [](float value) { return 0.0f <= value && value <= 1.0f; }));
  if (dataset.kind() == DataKind::images) {
    const ImageDataset& images = require_images(dataset, "any");
    CHECK(images.classes() >= 2);
    CHECK(batch.inputs.size() == 100 * images.image_shape().size());
    CHECK(batch.labels.size() == 100);
    CHECK(are_within(batch.labels, static_cast<std::size_t>(images.classes())));
  } else if (dataset.kind() == DataKind::text) {
    const TextDataset& text = require_text(dataset, "any");
    CHECK(batch.tokens.size() == 100 * text.context());
    CHECK(batch.labels.size() == 100 * text.context());
    CHECK(are_within(batch.tokens, text.vocabulary().size()));
    CHECK(are_within(batch.labels, text.vocabulary().size()));
  } else {
    const SceneDataset& scenes = require_scenes(dataset, "any");
    CHECK(scenes.classes() >= 1);
    CHECK(batch.inputs.size() == 100 * scenes.image_shape().size());
    CHECK(batch.boxes.size() == 100);
  }
}

TEST_CASE("every data source loads a usable data set, always the same one") {
  CHECK(names::names_of(data_sources()) == std::vector<std::string>{"builtin", "digits", "text", "scenes"});
  for (const DataSource& source : data_sources()) {
    CAPTURE(source.name);
    CHECK(!source.description.empty());
    if (!source.kind) continue;
    const DataRequest request{.kind = *source.kind, .context = 10};
    const auto dataset = load_dataset(source.name, request);
    CHECK(dataset->name() == source.name);
    CHECK(dataset->kind() == source.kind);
    const Batch batch = BatchSampler(*dataset, 0, 100).batch(0);
    check_usable(*dataset, batch);
    const Batch again = BatchSampler(*load_dataset(source.name, request), 0, 100).batch(0);
    CHECK(again.inputs == batch.inputs);
    CHECK(again.tokens == batch.tokens);
    CHECK(again.boxes == batch.boxes);
  }
}

TEST_CASE("builtin stands for the source of the kind that is asked for") {
  for (const DataKind kind : kinds) CHECK(load_dataset("builtin", {.kind = kind})->kind() == kind);
  CHECK(load_dataset("builtin")->name() == "digits");
  const auto text = load_dataset("builtin", {.kind = DataKind::text, .context = 17});
  CHECK(text->name() == "text");
  CHECK(require_text(*text, "any").context() == 17);
}

TEST_CASE("a source of another kind than asked for") {
  CHECK_THROWS_WITH_AS(
      load_dataset("digits", {.kind = DataKind::text}),
      "data 'digits' holds images; allowed for text: builtin, text, a text file, a directory "
      "with one .txt file",
      std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      load_dataset("text"),
      "data 'text' holds text; allowed for images: builtin, digits, a directory with IDX files",
      std::invalid_argument);
  CHECK_THROWS_WITH_AS(load_dataset("digits", {.kind = DataKind::scenes}),
                       "data 'digits' holds images; allowed for scenes: builtin, scenes",
                       std::invalid_argument);
}

TEST_CASE("neither a source nor a file") {
  CHECK_THROWS_WITH_AS(
      load_dataset("no/such/place"),
      "data 'no/such/place' not found; allowed for images: builtin, digits, a directory with IDX files",
      std::invalid_argument);
  CHECK_THROWS_AS(load_dataset("no/such/place", {.kind = DataKind::text}), std::invalid_argument);
  const TemporaryDirectory directory;
  const std::string folder = directory.path().string(), file = folder + "/readme.txt";
  std::ofstream(file) << "words";
  CHECK_THROWS_WITH_AS(load_dataset(folder, {.kind = DataKind::scenes}),
                       ("data '" + folder + "' is a directory; allowed for scenes: builtin, scenes").c_str(),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      load_dataset(file),
      ("data '" + file +
       "' is a file, which is read as text; allowed for images: builtin, digits, a directory "
       "with IDX files")
          .c_str(),
      std::invalid_argument);
  CHECK_THROWS_AS(load_dataset(directory.path().string(), {.kind = DataKind::text}), std::runtime_error);
  CHECK_THROWS_AS(load_dataset(directory.path().string()), std::runtime_error);
}

}  // namespace
}  // namespace sim
