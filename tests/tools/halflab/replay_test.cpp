#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "experiments/training/gradient_record.h"
#include "experiments/training/training_setup.h"
#include "sim/loss_scaling/registry.h"
#include "tests/temporary_directory.h"
#include "tests/tools/halflab/command.h"
#include "tools/halflab/replay/findings.h"

namespace {

using experiments::GradientRecord;
using experiments::StepGradients;
using halflab::replay::Replay;
using halflab::replay::Untold;
using test::run_halflab;
using test::TemporaryDirectory;

/// A short run of a small network, recorded below the directory; the scales that it really had.
std::vector<float> record_run(const TemporaryDirectory& directory, const std::string& scaler,
                              int exponents_every) {
  experiments::TrainingOptions options{.model = "mlp:hidden1=16:hidden2=8",
                                       .batch = 16,
                                       .steps = 30,
                                       .record = true,
                                       .record_every = exponents_every,
                                       .directory = directory / "."};
  const experiments::TrainingSetup setup(options);
  sim::Trainer trainer = setup.trainer({.policy = "amp", .scaler = scaler, .keep_in = ""});
  std::vector<float> scales;
  for (int step = 0; step < setup.steps(); ++step) {
    const sim::StepRecord record = trainer.step();
    scales.push_back(record.scale);
    if (record.decision == sim::Decision::abort) break;
  }
  return scales;
}

std::string write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
  return file.string();
}

}  // namespace

TEST_CASE("halflab replay: every global scaler, on a record of its own run, has the scales that it had") {
  for (const sim::ScalerRow& row : sim::scalers()) {
    if (row.kind != sim::ScalerKind::global) continue;
    INFO(row.name);
    const TemporaryDirectory directory;
    const std::vector<float> scales = record_run(directory, std::string(row.name), 1);
    const GradientRecord record = experiments::read_gradient_record(directory / "record");
    REQUIRE(record.steps.size() == scales.size());
    CHECK(record.scaler == row.name);
    const Replay replay = halflab::replay::replay(record, std::string(row.name));
    REQUIRE(replay.steps.size() == scales.size());
    CHECK(replay.untold() == 0);
    for (std::size_t i = 0; i < scales.size(); ++i) {
      CHECK(record.steps[i].scale == scales[i]);
      CHECK(replay.steps[i].scale == scales[i]);
    }
  }
}

TEST_CASE("halflab replay: as many scalers as there are in all are each replayed") {
  const TemporaryDirectory directory;
  std::string asked;
  for (std::size_t interval = 1; interval <= sim::scalers().size(); ++interval)
    asked += (asked.empty() ? "" : ",") + ("dynamic:growth_interval=" + std::to_string(interval));
  const auto run = run_halflab(
      {"replay", write(directory / "r.csv", "step,max_abs\n1,1\n"), "--scalers", asked, "--json"});
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.find("dynamic:growth_interval=28") != std::string::npos);
}

TEST_CASE("halflab replay: a scaler on another's record does what its own run does until the first skip") {
  const TemporaryDirectory one, two;
  record_run(one, "static:scale=1024", 1);
  const std::vector<float> scales = record_run(two, "dynamic:init_scale=32768:growth_interval=3", 1);
  const Replay replay = halflab::replay::replay(experiments::read_gradient_record(one / "record"),
                                                "dynamic:init_scale=32768:growth_interval=3");
  for (std::size_t i = 0; i < scales.size() && replay.steps[i].decision == sim::Decision::apply; ++i)
    CHECK(replay.steps[i].scale == scales[i]);
  CHECK(replay.skipped() > 0);  // the scale grows until the gradients overflow
}

TEST_CASE(
    "halflab replay: steps that the record cannot tell are counted, and scalers without exponents keep S "
    "there") {
  const TemporaryDirectory directory;
  record_run(directory, "static:scale=1024", 10);
  const GradientRecord record = experiments::read_gradient_record(directory / "record");
  const Replay adaptive = halflab::replay::replay(record, "adaptive");
  CHECK(adaptive.untold() >= 27);
  for (std::size_t i = 0; i + 1 < adaptive.steps.size(); ++i) {
    if (adaptive.steps[i].untold == Untold::exponents)
      CHECK(adaptive.steps[i + 1].scale == adaptive.steps[i].scale);
  }
  CHECK(halflab::replay::replay(record, "dynamic").untold() == 0);
}

TEST_CASE("halflab replay: an overflow of unknown size is told at larger scales alone") {
  GradientRecord record{.steps = {{.step = 0, .scale = 1024, .found_nonfinite = true},
                                  {.step = 1, .scale = 512, .max_abs = 100}}};
  const auto told = [&](double scale) {
    return halflab::replay::replay(record, "static:scale=" + std::to_string(scale));
  };
  CHECK(told(2048).untold() == 0);
  CHECK(told(2048).skipped() == 2);  // 2048 * 100 > 65520
  CHECK(told(512).steps[0].untold == Untold::overflow);
  CHECK(told(512).skipped() == 0);
  record.steps[0].twin_max_abs_all = 70;  // 1024 * 70 > 65520 >= 512 * 70
  CHECK(told(512).untold() == 0);
  CHECK(told(512).skipped() == 0);
  record.steps[0].twin_max_abs_all = 130;
  CHECK(told(512).skipped() == 1);
}

TEST_CASE("halflab replay: a CSV file of largest gradients is a record") {
  const TemporaryDirectory directory;
  const std::string file = write(directory / "r.csv", "step, max_abs\n0,1.5\n1,0.5\n7,3\n");
  const auto json =
      run_halflab({"replay", file, "--scalers", "static:scale=32768,static:scale=65536", "--json"}).json();
  CHECK(json.at("summary").at("skipped.static:scale=32768").integer() == 1);  // 3 * 2^15
  CHECK(json.at("summary").at("skipped.static:scale=65536").integer() == 2);
  CHECK(json.at("verdict").string().find("cannot be told") != std::string::npos);
}

TEST_CASE("halflab replay: a largest gradient that is not finite is a step that was not") {
  const TemporaryDirectory directory;
  const auto replayed = [&](const std::string& text) {
    return run_halflab({"replay", write(directory / "r.csv", text), "--scalers",
                        "dynamic:init_scale=1024,static:scale=512,none", "--json"})
        .json();
  };
  const auto count = [&](const auto& json, const std::string& key) {
    return json.at("summary").at(key).integer();
  };
  for (const std::string value : {"inf", "nan"}) {
    INFO(value);
    const auto without = replayed("step,max_abs\n0,1\n1," + value + "\n2,1\n");
    CHECK(count(without, "recorded_skips") == 1);
    CHECK(count(without, "skipped.dynamic:init_scale=1024") == 1);
    CHECK(count(without, "skipped.static:scale=512") == 1);
    CHECK(count(without, "cannot_be_told.static:scale=512") == 0);
    const auto scaled = replayed("step,max_abs,scale\n0,1,1024\n1," + value + ",1024\n2,1,512\n");
    CHECK(count(scaled, "recorded_skips") == 1);
    CHECK(count(scaled, "skipped.dynamic:init_scale=1024") == 1);
    CHECK(count(scaled, "equal_to_record") == 1);
    CHECK(count(scaled, "cannot_be_told.static:scale=512") == 1);  // it was not finite at a larger S
  }
  const auto said = replayed("\"step\",\"max_abs\",\"found_inf\"\r\n0,1,False\r\n1,,True\r\n2,,False\r\n");
  CHECK(count(said, "recorded_skips") == 1);
  CHECK(count(said, "cannot_be_told.static:scale=512") == 2);
}

TEST_CASE(
    "halflab replay: without the run's scales nobody is said to have had them, nor to skip what cannot be "
    "told") {
  const TemporaryDirectory directory;
  const std::string file = write(directory / "r.csv", "step,max_abs\n0,1.5\n1,0.5\n7,3\n");
  const std::string few = run_halflab({"replay", file, "--scalers", "none,adaptive"}).out;
  INFO(few);
  CHECK(few.find("none skips 0; adaptive cannot be told at any step.") != std::string::npos);
  CHECK(few.find(" no\n") == std::string::npos);
  CHECK(few.find("--record-every") == std::string::npos);
  const std::string all = run_halflab({"replay", file, "--scalers", "all"}).out;
  INFO(all);
  CHECK(all.find("scalers skip from 0 (none) to ") != std::string::npos);
}

TEST_CASE("halflab replay: a run's folder is as good as the record in it") {
  const TemporaryDirectory directory;
  record_run(directory, "dynamic", 10);
  CHECK(run_halflab({"replay", directory.path().string()}).exit_code == 0);
  std::filesystem::create_directories(directory / "cells/b");
  std::filesystem::copy(directory / "record", directory / "cells/b/record");
  const test::CommandRun two = run_halflab({"replay", directory.path().string()});
  CHECK(two.exit_code == 2);
  CHECK(two.err.find("has 2 records; name one, such as ") != std::string::npos);
}

TEST_CASE("halflab replay: logs of libraries give bounds alone") {
  const TemporaryDirectory directory;
  const auto verdict = [&](const std::string& line) {
    return run_halflab({"replay", write(directory / "log.txt", "epoch 1\n" + line + "\n" + line + "\n")}).out;
  };
  for (const std::string line :
       {"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
        "| NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: 32768.0",
        "Gradient overflow.  Skipping step, reducing loss scale to 32768.0",
        "Rank 3 :: Gradient overflow.  Skipping step, reducing loss scale to 32768.0",
        "OVERFLOW! Skipping step. Attempted loss scale: 65536, reducing to 32768",
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, but hysteresis is 2. "
        "Reducing to 1",
        "2023-06-13 17:37:40 | INFO | fairseq.trainer | NOTE: overflow detected, setting loss scale to: "
        "32768.0",
        "| WARNING: overflow detected, setting loss scale to: 32768.0"}) {
    INFO(line);
    CHECK(verdict(line).find("tells of 2 overflows, in lines 2 to 3, at scale 2^16: gradients "
                             "reached at least 1, or were NaN.") != std::string::npos);
  }
}

TEST_CASE("halflab replay: a log tells a scale that sinks from one that grows back") {
  const TemporaryDirectory directory;
  const auto run = [&](const std::vector<int>& scales) {
    std::string text = "start\n";
    for (const int scale : scales)
      text += "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: " + std::to_string(scale) +
              ", reducing\nloss 1\n";
    return run_halflab({"replay", write(directory / "log.txt", text), "--json"}).json();
  };
  const auto sinking = run({4096, 65536, 32768, 16384, 8192});
  CHECK(sinking.at("summary").at("sinking_overflows").integer() == 4);
  CHECK(sinking.at("verdict").string().find("The last 4 came each at a smaller S") != std::string::npos);
  CHECK(sinking.at("tables").at("overflows").at(4).at("line").integer() == 10);
  CHECK(sinking.at("tables").at("overflows").at(4).at("scale_log2").number() == 13);
  CHECK(run({65536, 32768, 16384})
            .at("verdict")
            .string()
            .find("They came each at a smaller S than the one before: S "
                  "began too high, gradients grow") != std::string::npos);
  CHECK(
      run_halflab({"replay", write(directory / "apex.log",
                                   "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to "
                                   "6.103515625e-05\n")})
          .out.find("in line 1, at scale 2^-13:") != std::string::npos);
  const auto growing = run({65536, 65536, 131072, 65536, 65536});
  CHECK(growing.at("summary").at("sinking_overflows").integer() == 1);
  CHECK(growing.at("verdict").string().find("on purpose") != std::string::npos);
}

TEST_CASE("halflab replay: a log in which S sinks to 0 has the bounds of the scales before") {
  const TemporaryDirectory directory;
  const auto run = [&](const std::vector<std::string>& scales) {
    std::string text;
    for (const std::string& scale : scales)
      text += "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to " + scale + "\n";
    return run_halflab({"replay", write(directory / "log.txt", text), "--json"}).json();
  };
  const auto sunk = run({"32768.0", "1.0", "0.5", "0.0", "0.0", "0.0"});
  CHECK(sunk.at("verdict").string().starts_with(
      "This Apex log tells of 6 overflows, in lines 1 to 6, at scales 2^0 to 2^16: gradients reached at "
      "least 6.55e+04, or were NaN. S sank to 0, first in line 4: such gradients are not finite at any S."));
  CHECK(sunk.at("verdict").string().find("S grew back") == std::string::npos);
  CHECK(sunk.at("summary").at("overflows").integer() == 6);
  CHECK(sunk.at("summary").at("zero_scale_overflows").integer() == 3);
  CHECK(sunk.at("summary").at("lowest_overflow_scale_log2").number() == 0);
  CHECK(sunk.at("summary").at("sinking_overflows").integer() == 3);
  CHECK(run({"0.0"}).at("verdict").string().starts_with(
      "This Apex log tells of 1 overflow, in line 1. S sank to 0, first in line 1:"));
  CHECK(run({"1.0", "5e-324"})
            .at("verdict")
            .string()
            .find("at scales 2^-1073 to 2^1: gradients were infinite, or were NaN.") != std::string::npos);
}

TEST_CASE("halflab replay: a CSV file may begin with a byte-order mark") {
  const TemporaryDirectory directory;
  for (const std::string header : {"\xef\xbb\xbfstep,max_abs", "\xef\xbb\xbf\"step\",\"max_abs\""})
    CHECK(run_halflab({"replay", write(directory / "r.csv", header + "\r\n0,1.5\r\n"), "--json"})
              .json()
              .at("summary")
              .at("steps")
              .integer() == 1);
}

TEST_CASE(
    "halflab replay: a table of S and overflows alone is a record, and a largest gradient tells its "
    "overflow's size") {
  const TemporaryDirectory directory;
  const auto skips = [&](const std::string& csv, const std::string& scaler) {
    const test::CommandRun run =
        run_halflab({"replay", write(directory / "r.csv", csv), "--scalers", scaler});
    CHECK(run.exit_code == 0);
    return run.out;
  };
  const std::string alone =
      skips("step,scale,found_inf\n0,65536,1\n1,32768,0\n2,32768,0\n", "static:scale=131072");
  INFO(alone);
  CHECK(alone.find("skips 1 (2 cannot be told)") != std::string::npos);
  const std::string csv = "step,scale,max_abs,found_inf\n0,65536,1.25,1\n1,65536,0.25,1\n";
  CHECK(skips(csv, "static:scale=1024").find("skips 0 (1 cannot be told)") != std::string::npos);
  const std::string untold = skips("step,max_abs\n0,1\n1,1\n", "adaptive");
  INFO(untold);
  CHECK(untold.find("adaptive cannot be told at any step") != std::string::npos);
  CHECK(untold.find("2^") == std::string::npos);
}

TEST_CASE("halflab replay: what is no record is one line and exit code 2") {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "r");
  const auto check = [&](const std::string& path, const std::string& message) {
    const test::CommandRun run = run_halflab({"replay", path});
    INFO(run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.err.find(message) != std::string::npos);
  };
  check((directory / "none").string(), "cannot be read");
  check((directory / "r").string(), "holds no record");
  write(directory / "r/manifest.json", "{}");
  check((directory / "r").string(), "is not that of a gradient record");
  write(directory / "r/manifest.json", R"({"format": "halflab gradient record", "version": 2})");
  check((directory / "r").string(), "of version 2; allowed: 1");
  check(write(directory / "a.csv", "loss,step\n"), "is no record: its first line is 'loss,step'");
  check(write(directory / "b.csv", "step,max_abs\n1,x\n"), "line 2: 'x' is no number");
  check(write(directory / "c.csv", "step,max_abs\n1\n"), "line 2: 1 cells under a header of 2");
  check(write(directory / "d.csv", "step,max_abs\n3,1\n2,1\n"), "line 3: steps must ascend");
  check(write(directory / "n.csv", "step,max_abs\n3,-1\n"), "line 2: max_abs is -1; must be at least 0");
  check(write(directory / "s.csv", "step,max_abs\n-3,1\n"), "line 2: step is -3; must be an integer from 0");
  for (const std::string step : {"0.5", "nan", "inf", "1e16"})
    check(write(directory / "h.csv", "step,max_abs\n" + step + ",1\n"), "; must be an integer from 0");
  for (const std::string scale : {"0", "-1", "inf", "nan"})
    check(write(directory / "z.csv", "step,max_abs,scale\n3,1," + scale + "\n"),
          "line 2: scale is " + scale + "; must be more than 0, and finite");
  std::filesystem::create_symlink("loop", directory / "loop");
  check((directory / "loop").string(), "loop' cannot be read (Too many levels of symbolic links)");
  check(write(directory / "e.csv", "step,max_abs\n"), "has no steps");
  CHECK(run_halflab({"replay", write(directory / "f.csv", "step,max_abs\n1,1\n"), "--scalers", "delayed"})
            .exit_code == 2);
}
