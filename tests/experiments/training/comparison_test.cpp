#include "experiments/training/comparison.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/temporary_directory.h"
#include "tests/text.h"

using experiments::Cell;
using experiments::Comparison;
using test::contains;

namespace {

/// Runs of one network whose summaries are written by hand.
class Runs {
 public:
  Runs() : setup_(options_) {}

  /// A run of each loss, with seeds from 0.
  Runs& add(const std::string& policy, const std::vector<double>& losses,
            const std::string& scaler = "none") {
    for (std::size_t seed = 0; seed < losses.size(); ++seed) {
      const auto path = directory_ / (policy + scaler + std::to_string(seed));
      cells_.push_back({"mlp", policy, scaler, seed, path});
      std::filesystem::create_directory(path);
      write(cells_.back(), summary_of(losses[seed]));
    }
    return *this;
  }
  /// The scaler ended the newest run.
  Runs& ended_at(int step) {
    nlohmann::ordered_json summary = summary_of(0.5);
    summary["steps"] = step;
    summary["abort_reason"] = "no scale left";
    write(cells_.back(), summary);
    return *this;
  }

  Runs& with_common(const experiments::RunChoice& common) {
    common_ = common;
    return *this;
  }
  /// The newest run went on with other ranks.
  Runs& went_on(const std::string& ranks) {
    nlohmann::ordered_json summary = summary_of(0.5);
    summary["former_ranks"] = ranks;
    write(cells_.back(), summary);
    return *this;
  }

  std::vector<Cell>& cells() { return cells_; }
  Comparison comparison() const { return Comparison("mlp", setup_, cells_, common_); }
  std::string verdict() const {
    experiments::RunRecord record(directory_ / "out");
    experiments::write_verdict(record, comparison());
    return record.verdict();
  }

 private:
  static nlohmann::ordered_json summary_of(double loss) {
    return {{"final_loss", std::isfinite(loss) ? nlohmann::ordered_json(loss) : "nan"},
            {"final_accuracy", std::isfinite(loss) ? loss : 0.1},
            {"steps", 500},
            {"skipped_steps", 0},
            {"skipped_for_scale", 0},
            {"skipped_at_any_scale", 0},
            {"skipped_by_rule", 0},
            {"skipped_after_overflow", 0},
            {"final_scale_log2", 0},
            {"fraction_swallowed", 0},
            {"scaler_twins", 0},
            {"mean_fraction_flushed", 0.125},
            {"mean_norm_share_flushed", 0.25},
            {"mean_relative_error", "nan"},
            {"abort_reason", ""}};
  }
  static void write(const Cell& cell, const nlohmann::ordered_json& summary) {
    std::ofstream(cell.directory / "summary.json") << summary.dump();
  }

  test::TemporaryDirectory directory_;
  experiments::TrainingOptions options_{.model = "mlp:hidden1=8:hidden2=4"};
  experiments::TrainingSetup setup_;
  std::vector<Cell> cells_;
  experiments::RunChoice common_;
};

}  // namespace

TEST_CASE("comparison: from three seeds on differences are judged, and several are said to be uncorrected") {
  Runs runs;
  runs.add("fp32", {0.9, 0.91, 0.9}).add("amp", {0.95, 0.97, 0.95});
  const std::string one = runs.verdict();
  CHECK(
      one.starts_with("amp with none ends better than fp32, by the 95 % t-interval of the difference in test "
                      "accuracy, paired over 3 seeds."));
  CHECK(!contains(one, "uncorrected"));
  runs.add("O2", {0.88, 0.93, 0.92});
  const std::string two = runs.verdict();
  CHECK(two.starts_with("O2 with none cannot be told from fp32; amp with none ends better than fp32, by "));
  CHECK(contains(two, "paired over 3 seeds and uncorrected for the number of comparisons."));
}

TEST_CASE("comparison: without fp32 it is said what others would be judged against") {
  Runs runs;
  runs.add("amp", {0.9, 0.91, 0.9});
  CHECK(!contains(runs.verdict(), "judged"));
  runs.add("amp", {0.95, 0.97, 0.95}, "static");
  CHECK(runs.verdict().starts_with(
      "Nothing is judged: differences are to fp32, which --policy does not name."));
}

TEST_CASE("comparison: two seeds, and pairs that all differ alike, are no evidence") {
  Runs two_seeds;
  two_seeds.add("fp32", {0.9, 0.91}).add("amp", {0.95, 0.96});
  CHECK(!contains(two_seeds.verdict(), " than fp32"));
  CHECK(contains(two_seeds.verdict(), "judged from 3 seeds on"));
  Runs alike;
  alike.add("fp32", {0.9, 0.8, 0.7}).add("amp", {0.95, 0.85, 0.75});
  CHECK(!contains(alike.verdict(), "by the 95 %"));
  CHECK(contains(alike.verdict(), "Not judged against fp32: amp with none, the same in every pair."));
}

TEST_CASE(
    "comparison: a run that its scaler ended is in the headline and its row, and out of the judgement") {
  Runs runs;
  runs.add("fp32", {0.9, 0.91, 0.9}).add("amp", {0.5, 0.51, 0.5}, "fairseq").ended_at(7);
  const std::string verdict = runs.verdict();
  const std::string ending = "1 of 3 runs ended by their scaler at step 7 of 500";
  CHECK(contains(verdict, " Under amp with fairseq: " + ending + "."));
  CHECK(contains(verdict, "  " + ending + "\n"));
  CHECK(!contains(verdict, " than fp32"));
  CHECK(contains(verdict, "Not judged against fp32: amp with fairseq, where runs were ended or diverged."));

  Runs single;
  single.add("fp16", {0.5}, "fairseq").ended_at(3);
  CHECK(single.comparison().groups()[0].ending(500) == "ended by its scaler at step 3 of 500");
  CHECK(single.verdict().starts_with(
      "mlp under fp16 with fairseq: ended by its scaler at step 3 of 500, at a test loss of 0.50000"));
  Runs reference;
  reference.add("fp32", {0.9, 0.91, 0.9}, "fairseq").ended_at(3).add("amp", {0.95, 0.97, 0.95});
  CHECK(!contains(reference.verdict(), " than fp32"));
}

TEST_CASE("comparison: a run without a finite loss has diverged") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  Runs one, some;
  CHECK(one.add("amp", {none})
            .verdict()
            .starts_with("mlp under amp with none: diverged, at no finite test loss and "));
  CHECK(contains(some.add("amp", {none, 0.5}).verdict(), "mlp under amp with none: 1 of 2 diverged, at no "));
}

TEST_CASE("comparison: that fp32 is all-reduced in FP32 is said where others are not") {
  const auto setting = [](const std::string& other, sim::AllReducePrecision precision) {
    Runs runs;
    runs.add("fp32", {0.5}).add(other, {0.5}, "dynamic");
    runs.with_common({.parallel = {.ranks = 4, .all_reduce = {.precision = precision}}});
    return runs.comparison().setting();
  };
  const std::string said = " The runs of fp32 were all-reduced in FP32.";
  CHECK(setting("amp", sim::AllReducePrecision::fp16).ends_with(said));
  CHECK(!contains(setting("amp", sim::AllReducePrecision::fp32), said));
}

TEST_CASE("comparison: a run that went on with other ranks is named") {
  Runs runs;
  runs.add("amp", {0.5}, "dynamic").went_on("to step 24 on 4 ranks, then on 3");
  CHECK(
      contains(runs.verdict(),
               "amp with dynamic, seed 0, ran to step 24 on 4 ranks, then on 3: its bits are those of no "));
}

TEST_CASE("comparison: what the gradient lost against its twin stands in the table") {
  Runs runs;
  runs.add("amp", {0.9});
  const std::string verdict = runs.verdict();
  CHECK(contains(verdict, "flushed  of the norm  relative error\n"));
  CHECK(contains(verdict, " 12.5 %       25.0 %               -\n"));
}

TEST_CASE("comparison: a summary that lacks a result is named with what to do") {
  Runs runs;
  runs.add("fp32", {0.9});
  const auto file = runs.cells()[0].directory / "summary.json";
  for (const char* content : {"{\"final_loss\": 1}", "{\"final_lo", "[]", "{\"final_loss\": [1]}"}) {
    std::ofstream(file) << content;
    std::string message;
    try {
      runs.comparison();
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
    INFO(content);
    CHECK(contains(message, "file '" + file.string() + "' "));
    CHECK(contains(message, "remove it, and the same command makes its run again"));
  }
}
