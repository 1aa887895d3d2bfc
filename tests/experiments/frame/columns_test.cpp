#include "experiments/frame/columns.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/file_contents.h"
#include "tests/temporary_directory.h"

namespace {

using namespace experiments;

struct Layer {
  std::string name;
  double loss;
};

struct LayerAtStep {
  int step;
  Layer layer;
};

const std::vector<Column<Layer>> layer_columns{{"layer", "", &Layer::name},
                                               {"loss_log2", "log2", &Layer::loss, "--losses"}};

const TableOf<LayerAtStep> steps_table{
    .name = "steps",
    .rows = "each layer of each step",
    .columns = joined<Column<LayerAtStep>>(
        {{"step", "steps", &LayerAtStep::step}},
        columns_of_part<LayerAtStep, Layer>(
            layer_columns, [](const LayerAtStep& row) -> const Layer& { return row.layer; }))};

const SummaryOf<Layer> summary{
    {{"<model>.<layer>.loss", "of the layer", [](const Layer& layer) { return layer.loss; }},
     {"<model>.<layer>.half", "only of those above 1",
      [](const Layer& layer) { return layer.loss > 1 ? std::optional(layer.loss / 2) : std::nullopt; },
      "losses above 1"},
     {"<model>.<layer>.mean", "of some", [](const Layer& layer) {
        const std::vector<double> values{layer.loss, layer.loss};
        return estimate(std::span(values).first(layer.loss > 1 ? 2 : 1));
      }}}};

}  // namespace

TEST_CASE("columns: a table writes the columns that its note lists") {
  const test::TemporaryDirectory directory;
  RunRecord record(directory / "run");
  steps_table.write(record, std::vector<LayerAtStep>{{1, {"a", 0.5}}, {2, {"b", -1}}});
  record.commit({});
  CHECK(test::contents_of(directory / "run").at("steps.csv") == "step,layer,loss_log2\n1,a,0.5\n2,b,-1\n");
  const TableNote note = steps_table.note();
  REQUIRE(note.columns.size() == 3);
  CHECK(note.columns[2].name == "loss_log2");
  CHECK(note.columns[2].unit == "log2");
  CHECK(note.columns[2].when == "--losses");
}

TEST_CASE(
    "columns: a summary fills its names, leaves out what there is not, and writes the spread of several") {
  const test::TemporaryDirectory directory;
  RunRecord record(directory / "run");
  summary.write(record, {"a", 0.5}, {"mlp", "a"});
  summary.write(record, {"b", 4}, {"mlp", "b"});
  record.commit({});
  const auto written = nlohmann::ordered_json::parse(test::contents_of(directory / "run").at("summary.json"));
  std::vector<std::string> keys;
  for (const auto& [key, value] : written.items()) keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"mlp.a.loss", "mlp.a.mean", "mlp.b.loss", "mlp.b.half", "mlp.b.mean",
                                         "mlp.b.mean_std", "mlp.b.mean_lower", "mlp.b.mean_upper"});
  CHECK(written.at("mlp.b.half") == 2);
  CHECK_THROWS_AS(summary.write(record, {"c", 1}, {"mlp"}), std::logic_error);
  CHECK_THROWS_AS(summary.write(record, {"c", 1}, {"mlp", "c", "d"}), std::logic_error);
}

TEST_CASE("columns: outputs name every key once, and last the spread of estimates") {
  const SummaryOf<int> counts{{{"count", "of all", [](int n) { return n; }}}};
  const std::vector<SummaryKey> keys = outputs_of(summary, counts, summary, steps_table).summary_keys;
  REQUIRE(keys.size() == 5);
  CHECK(keys[1].name == "<model>.<layer>.half");
  CHECK(keys[1].when == "losses above 1");
  CHECK(keys[3].name == "count");
  CHECK(keys[4].name == spread_note().name);
}

TEST_CASE(
    "columns: outputs have units in parentheses, what brings an entry in brackets, lines of 100 characters") {
  const std::string name(40, 'k'), a(80, 'a'), b(80, 'b');
  CHECK(text_of({.tables = {steps_table.note()},
                 .summary_keys = {{"loss", "the loss"}, {name, "has its meaning below", "--long"}}}) ==
        "Tables:\n"
        "  steps.csv, a row for each layer of each step\n"
        "      step (steps), layer, loss_log2 (log2) [--losses]\n"
        "\nKeys of summary.json:\n"
        "  loss  the loss\n"
        "  " +
            name + "\n        has its meaning below [--long]\n");
  CHECK(text_of({.summary_keys = {{"k", a + " " + b}}}).find("\n     " + b) != std::string::npos);
  CHECK(wrapped("a line \n  of several words\n  of two  columns of words", 15) ==
        "a line\n  of several\n  words\n  of two  columns\n          of\n          words");
  CHECK(text_of({.summary_keys = {{"loss", "the loss"}}}).starts_with("Keys of summary.json:\n"));
  CHECK(text_of({.words = a + " " + b + "\n", .summary_keys = {{"loss", "the loss"}}}) ==
        a + "\n" + b + "\n\nKeys of summary.json:\n  loss  the loss\n");
}
