#include "sim/data/registry.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

#include "sim/registry.h"

namespace sim {
namespace {

TEST_CASE("every data source loads a usable data set, always the same one") {
  CHECK(names_of(data_sources()) == std::vector<std::string>{"builtin"});
  for (const DataSource& source : data_sources()) {
    CAPTURE(source.name);
    CHECK(!source.description.empty());
    const Dataset dataset = load_dataset(source.name);
    CHECK(dataset.name() == source.name);
    CHECK(dataset.classes() >= 2);
    const Batch batch = BatchSampler(dataset, 0, 100).batch(0);
    CHECK(batch.inputs.size() == 100 * dataset.image_shape().size());
    CHECK(std::ranges::all_of(batch.inputs, [](float value) { return 0.0f <= value && value <= 1.0f; }));
    CHECK(std::ranges::all_of(batch.labels,
                              [&](int label) { return 0 <= label && label < dataset.classes(); }));
    CHECK(BatchSampler(load_dataset(source.name), 0, 100).batch(0).inputs == batch.inputs);
  }
}

TEST_CASE("neither a source nor a directory") {
  CHECK_THROWS_WITH_AS(load_dataset("no/such/place"),
                       "data 'no/such/place' not found; allowed: a directory with IDX files, builtin",
                       std::invalid_argument);
}

}  // namespace
}  // namespace sim
