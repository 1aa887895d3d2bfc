#include "experiments/training/instruments.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/training/step_tables.h"
#include "tests/sim/ops/evaluation.h"
#include "tests/temporary_directory.h"

using experiments::InstrumentedRun;
using experiments::Json;
using sim::SkipRecord;
using sim::StepRecord;
using test::TemporaryDirectory;

namespace {

SkipRecord overflow_at(std::size_t step) {
  return {.step = step,
          .loss_scale = 1024,
          .place = SkipRecord::Place::gradient,
          .operation = "linear",
          .layer = "hidden1",
          .consumer = "relu",
          .element = 5,
          .index = {1, 2},
          .value = -std::numeric_limits<double>::infinity(),
          .tensor_scale = 512,
          .twin_value = -256,
          .twin_finite = true};
}

std::vector<StepRecord> skipped_steps() {
  SkipRecord in_forward{.step = 3, .place = SkipRecord::Place::forward, .operation = "exp", .layer = "norm"};
  return {{.step = 0},
          {.step = 1, .decision = sim::Decision::skip, .skip = overflow_at(1)},
          {.step = 2, .decision = sim::Decision::skip, .skip = overflow_at(2)},
          {.step = 3, .decision = sim::Decision::abort, .skip = in_forward}};
}

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("instruments: a step that was not measured has no share of anything") {
  const TemporaryDirectory directory;
  const std::vector<sim::GradientSite> sites{{"hidden1.weight", sim::GradientSite::Kind::weight, {0}}};
  const std::vector<StepRecord> steps{
      {.step = 0,
       .twin = {{.total = 8, .nonzero = 4, .flushed = 1, .twin_square = 1, .twin_max_abs = 0x1p-20}}},
      {.step = 1, .decision = sim::Decision::skip}};
  const std::vector<InstrumentedRun> runs{{.strategy = "static", .seed = 2, .steps = steps, .sites = sites}};
  experiments::RunRecord record(directory.path());
  experiments::write_steps(record, runs);
  experiments::write_layers(record, runs);
  record.commit(Json::object());
  const std::vector<std::string> rows = lines_of(directory.path() / "steps.csv");
  REQUIRE(rows.size() == 3);
  CHECK(rows[1].starts_with("static,2,0,0,0,0,1,0.25,0,0,0,0,0,"));
  CHECK(rows[2] == "static,2,1,0,0,1,0,nan,nan,nan,nan,nan,nan,nan,nan");
  const std::vector<std::string> layers = lines_of(directory.path() / "layers.csv");
  REQUIRE(layers.size() == 2);
  CHECK(layers[1].starts_with("static,2,0,hidden1.weight,weight,5,0.25,"));
}

TEST_CASE("instruments: what vanishes is none of rounding noise and none without a gradient") {
  const std::vector<sim::GradientSite> sites{{"attention.key.bias", sim::GradientSite::Kind::weight, {0}},
                                             {"hidden1", sim::GradientSite::Kind::activation, {1}},
                                             {"hidden2", sim::GradientSite::Kind::activation, {2}},
                                             {"unused", sim::GradientSite::Kind::weight, {3}}};
  const sim::TwinComparison noise{.nonzero = 1, .twin_max_abs = 0x1p-40, .is_rounding_noise = true},
      lost{.nonzero = 1, .twin_max_abs = 0x1p-30}, edge{.nonzero = 1, .twin_max_abs = 0x1p-25},
      alive{.nonzero = 1, .twin_max_abs = 0x1p-24};
  const auto sentence = [&](std::vector<sim::TwinComparison> twin) {
    const std::vector<StepRecord> steps{
        {.step = 0}, {.step = 1, .twin = std::move(twin)}, {.step = 2, .twin = {lost, lost, lost, lost}}};
    return experiments::vanishing_sentence({.strategy = "none", .steps = steps, .sites = sites});
  };
  CHECK(sentence({noise, edge, lost, {}}) ==
        "At step 1 and S = 1 the largest gradient of hidden2 is 2^-30.0, 5.0 octaves below the 2^-25 "
        "where nearest-even rounding reaches zero.");
  CHECK(sentence({noise, edge, alive, {}})
            .starts_with("At step 1 and S = 1 the largest gradient of hidden1 is 2^-25.0, 0.0 octaves "));
  const std::string none = "At step 1 and S = 1 no gradient tensor's largest value is below 2^-25.";
  CHECK(sentence({noise, alive, alive, {}}) == none);
  CHECK(sentence({noise, {}, {}, {}}) == none);
  CHECK(experiments::vanishing_sentence({.strategy = "none", .steps = std::vector<StepRecord>(3)}).empty());
}

TEST_CASE("instruments: means over the steps that were measured and applied") {
  const sim::TwinComparison half{
      .total = 8, .nonzero = 4, .flushed = 2, .twin_square = 4, .error_square = 1, .flushed_square = 1},
      none{.total = 8, .nonzero = 4, .twin_square = 4};
  experiments::TwinSums sums;
  sums.add({.step = 0});
  sums.add({.step = 1, .decision = sim::Decision::skip, .twin = {half}});
  for (const auto& [key, mean] : sums.means()) CHECK(std::isnan(mean));
  sums.add({.step = 2, .twin = {half}});
  sums.add({.step = 3, .twin = {none}});
  CHECK(sums.means() == names::NamedValues{{"mean_fraction_flushed", 0.25},
                                           {"mean_norm_share_flushed", 0.25},
                                           {"mean_relative_error", 0.25}});
}

TEST_CASE("instruments: the summary has the interval of several values, of one the value alone") {
  const TemporaryDirectory directory;
  experiments::RunRecord record(directory.path());
  experiments::SummaryValue(experiments::estimate(std::vector<double>{1, 2})).write(record, "loss");
  experiments::SummaryValue(experiments::estimate(std::vector<double>{5})).write(record, "steps");
  record.commit(Json::object());
  const nlohmann::ordered_json summary =
      nlohmann::ordered_json::parse(std::ifstream(directory.path() / "summary.json"));
  REQUIRE(summary.size() == 5);
  CHECK(summary.at("loss") == 1.5);
  CHECK(summary.at("loss_std") == doctest::Approx(0.7071068));
  CHECK(summary.at("loss_lower") == doctest::Approx(1.5 - 6.3531024));
  CHECK(summary.at("loss_upper") == doctest::Approx(1.5 + 6.3531024));
  CHECK(summary.at("steps") == 5);
}

TEST_CASE("instruments: decisions go by one name everywhere") {
  CHECK(sim::name_of(sim::Decision::apply) == "apply");
  CHECK(sim::name_of(sim::Decision::skip) == "skip");
  CHECK(sim::name_of(sim::Decision::abort) == "abort");
  CHECK(experiments::abort_sentence("amp with dynamic", 3, 1, "no scale left") ==
        "amp with dynamic, seed 3, made 1 step and was ended by its scaler: no scale left");
}

TEST_CASE("instruments: a row for each skipped step") {
  const TemporaryDirectory directory;
  const std::vector<StepRecord> steps = skipped_steps();
  experiments::RunRecord record(directory.path());
  experiments::write_skips(record,
                           std::vector<InstrumentedRun>{{.strategy = "dynamic", .seed = 7, .steps = steps}});
  record.commit(Json::object());
  const std::vector<std::string> lines = lines_of(directory.path() / "skips.csv");
  REQUIRE(lines.size() == 4);
  CHECK(lines[1] == "dynamic,7,1,skip,10,gradient,linear,hidden1,relu,5,1 2,-inf,9,-256,8,17,1,1");
  CHECK(lines[3] == "dynamic,7,3,abort,0,forward,exp,norm,,0,,0,0,,,,0,0");  // the twin has nothing there
}

TEST_CASE("instruments: a sentence for each kind of skipped steps, with the first of it") {
  const std::vector<StepRecord> steps = skipped_steps(), none{{.step = 0}};
  const std::vector<InstrumentedRun> runs{{.strategy = "none", .steps = none},
                                          {.strategy = "dynamic", .seed = 7, .steps = steps}};
  const std::string text = experiments::skips_paragraph(runs);
  CHECK(text.find(
            "Skipped for its scale: 2, the first under dynamic, seed 7. Step 1 at S = 2^10: the gradient of "
            "linear hidden1 is -inf at (1, 2), computed by the backward of relu, where the twin has 2^8.0, "
            "2^17.0 when scaled") == 0);
  CHECK(text.find("Skipped that no scale would have saved: 1, the first under dynamic, seed 7. Step 3") !=
        std::string::npos);
  CHECK(text.find("own rule") == std::string::npos);
  CHECK(experiments::skips_paragraph(std::vector<InstrumentedRun>{{.strategy = "none", .steps = none}})
            .empty());
}

TEST_CASE("instruments: what an unseen overflow did to the weights is laid to it, and not to any scale") {
  using Skip = sim::SkipRecord;
  const auto skipped = [](std::size_t step, const char* operation) {
    return StepRecord{
        .step = step,
        .decision = sim::Decision::skip,
        .skip = Skip{
            .step = step, .place = Skip::Place::forward, .operation = operation, .layer = "hidden1.weight"}};
  };
  const StepRecord overflow{.step = 4,
                            .unseen_overflow = Skip{.step = 4,
                                                    .place = Skip::Place::sum,
                                                    .ranks = 8,
                                                    .is_sum_over_ranks = true,
                                                    .layer = "hidden1.weight"}};
  const auto paragraph = [](const std::vector<StepRecord>& steps) {
    return experiments::skips_paragraph(
        std::vector<InstrumentedRun>{{.strategy = "dynamic", .seed = 7, .steps = steps}});
  };
  const std::string text =
      paragraph({skipped(3, "exp"), overflow, skipped(5, "parameter"), skipped(6, "exp")});
  CHECK(text.find("Skipped that no scale would have saved: 2, the first under dynamic, seed 7. Step 3") == 0);
  CHECK(text.find("Skipped with weights that an unseen overflow had left infinite or NaN: 1, the first under "
                  "dynamic, seed 7. Step 4 at S = 2^0: the gradient of hidden1.weight is ") !=
        std::string::npos);
  CHECK(paragraph({skipped(3, "parameter")}).find("Skipped that no scale would have saved: 1") == 0);
  CHECK(paragraph({overflow}).empty());
}

TEST_CASE("instruments: the updates of each parameter over the whole run") {
  const TemporaryDirectory directory;
  const std::vector<sim::ParameterSpec> parameters{{"hidden1.weight", {2, 5}}, {"hidden1.bias", {4}}};
  const std::vector<StepRecord> steps{{.step = 0, .parameter_updates = {{10, 3}, {4, 0}}},
                                      {.step = 1, .decision = sim::Decision::skip},
                                      {.step = 2, .parameter_updates = {{9, 9}, {0, 0}}}};
  experiments::RunRecord record(directory.path());
  experiments::write_parameters(
      record, std::vector<InstrumentedRun>{
                  {.strategy = "static", .seed = 2, .steps = steps, .parameters = parameters},
                  {.strategy = "none", .seed = 2, .parameters = parameters}});
  record.commit(Json::object());
  CHECK(lines_of(directory.path() / "parameters.csv") ==
        std::vector<std::string>{"strategy,seed,parameter,updates,swallowed", "static,2,hidden1.weight,19,12",
                                 "static,2,hidden1.bias,4,0", "none,2,hidden1.weight,0,0",
                                 "none,2,hidden1.bias,0,0"});
}

TEST_CASE("instruments: the twins that scalers asked for, all seeds of a strategy together") {
  const std::vector<StepRecord> first{{.step = 0, .scaler_twins = 2}, {.step = 1}},
      second{{.step = 0, .scaler_twins = 1}}, none{{.step = 0}};
  const std::vector<InstrumentedRun> runs{{.strategy = "none", .steps = none},
                                          {.strategy = "adaptive", .seed = 0, .steps = first},
                                          {.strategy = "adaptive", .seed = 1, .steps = second}};
  CHECK(experiments::scaler_twins_of(first) == 2);
  CHECK(experiments::scaler_twins_sentence(runs) ==
        "Beyond the steps themselves, adaptive asked for 3 twins in 3 steps, each one more backward pass.");
  CHECK(experiments::scaler_twins_sentence(std::span(runs).first(1)).empty());
}

TEST_CASE("instruments: statistics by tensor, and their octaves") {
  const TemporaryDirectory directory;
  const sim::Tensor gradient = tensor_of({4}, {0, 1, 1.5f, 0x1p-20f}, fp16::binary16);
  std::vector<StepRecord> steps{{.step = 0}, {.step = 1}};
  steps[1].statistics.push_back(sim::statistics_of(gradient, 2, {.exact = 3, .inexact = 1, .subnormal = 1}));
  const std::vector<sim::GradientSite> sites{{"hidden1.weight", sim::GradientSite::Kind::weight, {0}}};
  experiments::RunRecord record(directory.path());
  experiments::write_statistics(
      record, std::vector<InstrumentedRun>{{.strategy = "none", .steps = steps, .sites = sites}});
  record.commit(Json::object());
  const std::vector<std::string> statistics = lines_of(directory.path() / "statistics.csv");
  REQUIRE(statistics.size() == 2);
  CHECK(statistics[1].starts_with("none,0,1,hidden1.weight,weight,1,4,1,1,0,0,1,1,0,0,0.9013"));
  CHECK(lines_of(directory.path() / "exponents.csv") ==
        std::vector<std::string>{"strategy,seed,step,tensor,kind,exponent,count",
                                 "none,0,1,hidden1.weight,weight,-20,1",
                                 "none,0,1,hidden1.weight,weight,0,2"});
}

TEST_CASE("instruments: peaks by role") {
  sim::MemoryAccount account;
  {
    const sim::AllocationScope scope(&account, sim::MemoryRole::buffers);
    const sim::Tensor tensor({6}, fp16::binary16);
  }
  const auto peaks = experiments::peak_tensor_bytes(account);
  REQUIRE(peaks.size() == 1 + sim::memory_roles.size());
  CHECK(peaks[0] == std::pair<std::string, std::size_t>{"peak_tensor_bytes", 12});
  for (const auto& [key, bytes] : peaks)
    CHECK(bytes == (key == "peak_tensor_bytes" || key == "peak_tensor_bytes_buffers" ? 12 : 0));
}
