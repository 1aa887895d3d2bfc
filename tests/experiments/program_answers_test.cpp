/// What single experiment binaries answer.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/experiments/programs.h"
#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

namespace {

namespace fs = std::filesystem;
using programs::listed;
using programs::Outcome;
using programs::run;
using programs::small;
using programs::summary_of;
using test::content_of;
using test::contents_of;
using test::TemporaryDirectory;

/// Two images that are the same, as IDX files: every batch of them is the same.
void write_equal_images(const TemporaryDirectory& directory) {
  const std::string image = std::string("\x10\x80\xFF\x40", 4) + std::string(12, '\x7F');
  const std::string images = std::string("\0\0\10\3\0\0\0\2\0\0\0\4\0\0\0\4", 16) + image + image;
  for (const char* part : {"train", "t10k"}) {
    std::ofstream(directory / (std::string(part) + "-images-idx3-ubyte"), std::ios::binary) << images;
    std::ofstream(directory / (std::string(part) + "-labels-idx1-ubyte"), std::ios::binary)
        << std::string("\0\0\10\1\0\0\0\2\1\1", 10);
  }
}

}  // namespace

TEST_CASE("programs: the portable path gives the bytes of the vectorised one") {
  const TemporaryDirectory directory;
  const std::string fast = directory / "fast", portable = directory / "portable";
  const std::string arguments = "gradient_histogram --steps 3 --pool 1 --batch 16 --out ";
  REQUIRE(run(arguments + fast).exit_code == 0);
  ::setenv("HALFLAB_VECTOR_PATH", "portable", 1);
  const Outcome outcome = run(arguments + portable);
  ::unsetenv("HALFLAB_VECTOR_PATH");
  REQUIRE(outcome.exit_code == 0);
  std::map<std::string, std::string> a = contents_of(fast), b = contents_of(portable);
  a.erase("manifest.json");
  b.erase("manifest.json");
  CHECK(a == b);
}

TEST_CASE(
    "programs: memory_anatomy names the network that was asked for, and what of the chosen policy fits") {
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  const Outcome outcome =
      run("memory_anatomy --network gpt2_xl:layers=32:hidden=4096:heads=32 --batch 1 "
          "--policy bf16 --memory-gib 500 --out " +
          out);
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  // 32 layers of 12 h^2 + 13 h, the embeddings of 50257 tokens and 1024 positions, and the last norm
  CHECK(outcome.output.find(
            "GPT-2 xl with heads 32, hidden 4096, layers 32, batch 1, sequence 1024, 6.65 billion "
            "parameters, under bf16 with adamw") != std::string::npos);
  CHECK(nlohmann::json::parse(contents_of(out).at("summary.json")).at("largest_batch.bf16.full") > 1);
}

TEST_CASE("programs: memory_anatomy keeps the memory free that --context-mib names") {
  const TemporaryDirectory directory;
  const auto largest_batch = [&](const std::string& context) {
    const std::string out = directory / context;
    const Outcome outcome =
        run("memory_anatomy --network bert_large --memory-gib 24 --context-mib " + context + " --out " + out);
    INFO(outcome.output);
    REQUIRE(outcome.exit_code == 0);
    CHECK(outcome.output.find(" beside " + context + " MiB of the device's own kernels") !=
          std::string::npos);
    return nlohmann::json::parse(contents_of(out).at("summary.json")).at("largest_batch.O2.full").get<int>();
  };
  CHECK(largest_batch("500") > largest_batch("12000"));
  const Outcome none = run("memory_anatomy --memory-gib 24 --context-mib 24576");
  INFO(none.output);
  CHECK(none.exit_code == 2);
  CHECK(none.output.find("--context-mib: 24576 leave nothing of the card's") != std::string::npos);
}

TEST_CASE("programs: a verdict says what its own tables show, also of unusual options") {
  const TemporaryDirectory directory;
  struct Row {
    std::string command, says, does_not_say;
  };
  for (const Row& row : std::vector<Row>{
           {"scale_policy_order --optimizers adam:epsilon=0.01 --seeds 2 --steps 30 --detector-steps 2",
            "is not wholly divided out again: never unscaling has the factor", "goes unnoticed"},
           {"scale_policy_order --optimizers momentum --seeds 1 --steps 50 --detector-steps 2",
            "depart from it at some steps, by up to", "9 of the 16 mistakes"},
           {"underflow_sweep --model autoencoder --steps 5 --max-scale-log2 0",
            "whether that matters cannot be told, as --max-scale-log2", "too small ones to matter"},
           {"memory_anatomy --network llama2_7b --card a100-80gb --policy bf16",
            "of activations 117.8 %, 50.2 % and 50.2 %", "shrink"},
           {"accumulation --lengths-log2 10 --vectors 3", "of them are off by 0.73 %, at most by 0.95 %",
            "stays within"},
           {"op_precision --models lstm --steps 10 --batch 4",
            "0 of 4 operations fail the criterion in FP16. With every reduction in FP16 so does: linear.",
            "none"}}) {
    const Outcome outcome =
        run(row.command + " --out " + (directory / "out").string() + " --threads 2 --quiet");
    INFO(outcome.output);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.output.find(row.says) != std::string::npos);
    CHECK(outcome.output.substr(0, outcome.output.find("\n\n")).find(row.does_not_say) == std::string::npos);
    std::filesystem::remove_all(directory / "out");
  }
}

TEST_CASE("programs: every model runs, and classifiers report accuracy") {
  const TemporaryDirectory directory;
  const std::map<std::string, std::string> smaller{{"cnn", "cnn:channels=2"},
                                                   {"ssd", "ssd:channels=2"},
                                                   {"transformer", "transformer:layers=1:width=16:heads=2"},
                                                   {"lstm", "lstm:layers=1:width=16"}};
  for (const std::string& model : listed("models")) {
    const std::string out = directory / model;
    const std::string spec = smaller.contains(model) ? smaller.at(model) : model;
    const Outcome outcome =
        run("scaler_comparison --quick --steps 4 --batch 8 --seeds 1 --context 16 --twin-every 2 --model " +
            spec + " --scalers none,dynamic --out " + out);
    INFO(outcome.output);
    REQUIRE(outcome.exit_code == 0);
    const nlohmann::json summary = nlohmann::json::parse(contents_of(out).at("summary.json"));
    CHECK(summary.contains("dynamic.final_accuracy") == (model != "autoencoder"));
    const nlohmann::json manifest = nlohmann::json::parse(contents_of(out).at("manifest.json"));
    CHECK(manifest.at("settings").at("scaler.dynamic.growth_interval") == 20);
    CHECK(manifest.at("options").at("batch") == 8);
    CHECK(manifest.at("options").at("lr") > 0);
    CHECK(manifest.at("options").at("optimizer") != "");
    CHECK(manifest.at("options").at("schedule") != "");
  }
}

TEST_CASE("programs: every policy runs, with overrides too") {
  const TemporaryDirectory directory;
  std::vector<std::string> policies = listed("policies");
  policies.insert(policies.end(), {"O2:keep_batchnorm_fp32=false", "fp16:accumulation=hopper_fp16",
                                   "O3:weight_rounding=stochastic:master_weights=false"});
  for (const std::string& policy : policies) {
    const std::string out = directory / "out";
    const Outcome outcome = run("scaler_comparison --quick " + small + " --scalers adaptive --policy " +
                                policy + " --out " + out);
    INFO(policy, "\n", outcome.output);
    CHECK(outcome.exit_code == 0);
    CHECK(nlohmann::json::parse(contents_of(out).at("manifest.json")).at("options").at("policy") == policy);
  }
  const std::string out = directory / "fp32";
  REQUIRE(run("underflow_sweep --quick --policy fp32 --out " + out).exit_code == 0);
  const nlohmann::json summary = nlohmann::json::parse(contents_of(out).at("summary.json"));
  CHECK(summary.at("relative_error_at_scale_1") == 0);  // in FP32 run and twin are one
  CHECK(summary.at("flushed_at_scale_1") == 0);
}

TEST_CASE(
    "programs: every scaler of every kind runs, and two of the same with other options stand side by side") {
  const TemporaryDirectory directory;
  const std::vector<std::string> scalers = listed("scalers");
  const Outcome all =
      run("scaler_comparison --quick " + small + " --scalers all --out " + (directory / "all").string());
  INFO(all.output);
  REQUIRE(all.exit_code == 0);
  const nlohmann::json summary = nlohmann::json::parse(contents_of(directory / "all").at("summary.json"));
  for (const std::string& scaler : scalers) {
    INFO(scaler);
    CHECK(summary.contains(scaler + ".final_loss"));
  }
  const Outcome pair =
      run("scaler_comparison --quick " + small + " --scalers static:scale=8,static:scale=16 --out " +
          (directory / "pair").string());
  REQUIRE(pair.exit_code == 0);
  const nlohmann::json both = nlohmann::json::parse(contents_of(directory / "pair").at("summary.json"));
  CHECK(both.at("static:scale=8.final_scale_log2") == 3);
  CHECK(both.at("static:scale=16.final_scale_log2") == 4);
}

TEST_CASE("programs: a run that its scaler ends shows in the verdict, the table and the summary") {
  const TemporaryDirectory directory;
  const std::string out = directory / "out", ended = "deepspeed:init_scale=4:raise_error_at_min_scale=1";
  const Outcome outcome =
      run("scaler_comparison --model mlp:hidden1=32:hidden2=32 --steps 20 --batch 8 --seeds 1 "
          "--lr 1000 --scalers none," +
          ended + " --out " + out);
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  const nlohmann::json summary = summary_of(out);
  const int steps = summary.at(ended + ".steps");
  CHECK(steps < 20);
  CHECK(summary.at(ended + ".aborted_runs") == 1);
  CHECK(summary.at("none.steps") == 20);
  CHECK(summary.at("none.aborted_runs") == 0);
  CHECK(outcome.output.find(ended + ", seed 0, made " + std::to_string(steps) +
                            " steps and was ended by its scaler: ") != std::string::npos);
  CHECK(outcome.output.find(" " + std::to_string(steps) + ", ended  ") != std::string::npos);
}

TEST_CASE(
    "programs: that scaling was needed is said where the loss without it ends above FP32's, and only there") {
  const TemporaryDirectory directory;
  const auto verdict = [&](const std::string& arguments) {
    const Outcome outcome = run("scaler_comparison --quick --scalers none " + arguments + "--out " +
                                (directory / "out").string());
    REQUIRE(outcome.exit_code == 0);
    CHECK(outcome.output.find("the largest gradient of encoder1 is 2^-") != std::string::npos);
    return outcome.output;
  };
  // So short a run has learnt nothing but the mean of all images, of which nothing follows for the scalers.
  const std::string plain = verdict("");
  CHECK(plain.find("in 20 steps FP32 has learnt nothing") != std::string::npos);
  CHECK(plain.find(" FP32's loss.\n") == std::string::npos);
  CHECK(plain.find("the largest gradient of encoder1 is 2^-31.3") != std::string::npos);
  const std::string learnt = "--steps 150 --batch 64 ", longer = verdict(learnt);
  CHECK(longer.find("Without loss scaling amp ends ") != std::string::npos);
  CHECK(longer.find(" % above FP32's loss.\n") != std::string::npos);
  CHECK(longer.find("lies within 10 % of FP32's loss. A difference of less than 0.1 % is not told") !=
        std::string::npos);
  CHECK(verdict(learnt + "--seeds 1 ").find("judged from 3 seeds on") != std::string::npos);
}

TEST_CASE("programs: recipes of a network that has learnt nothing are not compared without a word") {
  const TemporaryDirectory directory;
  const auto verdict = [&](const std::string& arguments) {
    const Outcome outcome =
        run("opt_levels --quick --recipes O0,O3 " + arguments + "--out " + (directory / "out").string());
    REQUIRE(outcome.exit_code == 0);
    return outcome.output;
  };
  CHECK(verdict("").find("in 8 steps FP32 has learnt nothing") != std::string::npos);
  CHECK(verdict("--model mlp --steps 20 ").find("learnt nothing") == std::string::npos);
}

TEST_CASE("programs: nothing is held against an FP32 that diverged or has learnt nothing") {
  const TemporaryDirectory directory;
  const auto verdict = [&](const std::string& arguments) {
    const fs::path out = directory / arguments.substr(0, arguments.find(' '));
    const Outcome outcome = run(arguments + " --quick --out " + out.string());
    INFO(arguments, "\n", outcome.output);
    REQUIRE(outcome.exit_code == 0);
    return outcome.output;
  };
  const std::string autoencoder =
      verdict("opt_levels --recipes amp,fp64 --model autoencoder --steps 4 --seeds 3 --lr 900");
  CHECK(autoencoder.find("What the recipes cost cannot be said: ") != std::string::npos);
  CHECK(autoencoder.find("cannot be told from") == std::string::npos);
  CHECK(
      verdict("training --sweep --model autoencoder --policy fp32,amp --steps 4 --seeds 3 --scalers dynamic")
          .find("Nothing is judged: in 4 steps FP32 has learnt nothing") != std::string::npos);
  const std::string spiky = verdict(
      "scaler_comparison --model mlp --regimes spiky --outlier-factor 1e9 --scalers dynamic,static --seeds "
      "1");
  CHECK(spiky.find("what a strategy is worth cannot be said: FP32 ends without") != std::string::npos);
  CHECK(verdict("master_weights --seeds 3 --steps 40 --model mlp:hidden1=8:hidden2=8 --lr 1000 --optimizer "
                "sgd:weight_decay=1")
            .find("cannot be said: training in FP32 or with masters diverged") != std::string::npos);
}

TEST_CASE("programs: images so small that one of them has no batch statistics are trained on") {
  const TemporaryDirectory directory;
  write_equal_images(directory);
  const Outcome outcome = run("training --model cnn --batch 2 --steps 2 --data " + directory.path().string() +
                              " --out " + (directory / "out").string());
  INFO(outcome.output);
  CHECK(outcome.exit_code == 0);
}

TEST_CASE("programs: an update is counted at a learning rate that a schedule has not ended at 0") {
  const TemporaryDirectory directory;
  const fs::path out = directory / "out";
  REQUIRE(run("gradient_histogram --quick --steps 6 --batch 8 --model cnn:channels=2 --out " + out.string())
              .exit_code == 0);
  CHECK(summary_of(out).at("updates.max_abs_log2").is_number());
}

TEST_CASE("programs: final losses rank no scaler where FP32 has not learnt") {
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  const Outcome outcome =
      run("scaler_comparison --model mlp --regimes calm,spiky --scalers megatron,dynamic --seeds 3 "
          "--steps 30 --lr 1e-30 --out " +
          out);
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.output.find("Final losses say nothing here, and do not count: ") != std::string::npos);
  CHECK(outcome.output.find(" ≥ ") != std::string::npos);  // Megatron's S still comes down when the run ends
  std::istringstream rows(content_of(fs::path(out) / "ranking.csv"));
  std::vector<std::vector<std::string>> cells;
  for (std::string row; std::getline(rows, row);) {
    std::istringstream line(row);
    cells.emplace_back();
    for (std::string cell; std::getline(line, cell, ',');) cells.back().push_back(cell);
  }
  const auto column = std::ranges::find(cells.front(), "final_loss_rank") - cells.front().begin();
  REQUIRE(cells.size() == 5);
  for (std::size_t i = 1; i < cells.size(); ++i)
    CHECK(cells[i].at(static_cast<std::size_t>(column)) == "nan");
}

TEST_CASE("programs: memory_anatomy tells of one's own network nothing that was published of others") {
  const TemporaryDirectory directory;
  fs::copy_file(fs::path(HALFLAB_SOURCE_DIRECTORY) / "experiments" / "networks" / "mlp.toml",
                directory / "own.toml");
  const auto verdict = [&](const std::string& network) {
    return run("memory_anatomy --network " + network + " --out " + (directory / "out").string()).output;
  };
  CHECK(verdict("mlp").find("BERT") != std::string::npos);
  const std::string own = verdict((directory / "own.toml").string());
  CHECK(own.find("operator class") != std::string::npos);
  CHECK(own.find("BERT") == std::string::npos);
}

TEST_CASE("programs: memory_anatomy says where its answers end") {
  const TemporaryDirectory directory;
  const auto verdict = [&](const std::string& arguments) {
    return run("memory_anatomy " + arguments + " --out " + (directory / "out").string()).output;
  };
  CHECK(verdict("--network mlp --card h100").find(" 1048576 or more ") != std::string::npos);
  CHECK(verdict("--network llama2_7b --card v100").find(" none; 1 takes ") != std::string::npos);
}

TEST_CASE("programs: where nothing was measured, nothing is said of the gradient") {
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  const Outcome outcome = run("scaler_comparison " + small + " --scalers static:scale=1e12 --out " + out);
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  const nlohmann::json summary = summary_of(out);
  REQUIRE(summary.at("static:scale=1e12.skipped_steps") == 3);
  for (const char* strategy : {"fp32", "static:scale=1e12"}) {
    for (const char* key : {"mean_fraction_flushed", "mean_norm_share_flushed", "mean_relative_error"})
      CHECK(summary.at(std::string(strategy) + "." + key) == "nan");
  }
  const std::size_t row = outcome.output.find("\nstatic:scale=1e12");
  REQUIRE(row != std::string::npos);
  const std::string line = outcome.output.substr(row + 1, outcome.output.find('\n', row + 1) - row - 1);
  CHECK(std::count(line.begin(), line.end(), '%') == 1);  // of the loss against fp32
  CHECK(line.ends_with("-"));
}

TEST_CASE("programs: pooled batches do not share their random bits") {
  const TemporaryDirectory directory;
  write_equal_images(directory);
  // Weights hardly move and every batch is the same, so what differs is the rounding alone.
  const auto relative_error = [&](const std::string& policy, int pool) {
    const std::string out = directory / "out";
    const Outcome outcome =
        run("underflow_sweep --model mlp:hidden1=16:hidden2=8 --steps 1 --batch 2 --lr 1e-30 --optimizer sgd "
            "--max-scale-log2 0 --policy " +
            policy + " --pool " + std::to_string(pool) + " --data " + (directory / "").string() + " --out " +
            out);
    INFO(outcome.output);
    REQUIRE(outcome.exit_code == 0);
    return summary_of(out).at("relative_error_at_scale_1").get<double>();
  };
  CHECK(relative_error("amp", 1) == relative_error("amp", 2));
  const std::string stochastic = "amp:gradient_rounding=stochastic";
  CHECK(relative_error(stochastic, 1) != relative_error(stochastic, 2));

  std::ofstream(directory / "text") << std::string(3000, 'a') << std::string(300, 'b');  // the latter to test
  const auto fraction_subnormal = [&](int pool) {
    const std::string out = directory / "histogram";
    const Outcome outcome =
        run("gradient_histogram --model transformer:layers=1:width=8:heads=2:dropout=0.5 --steps 1 --batch 2 "
            "--context 8 --lr 1e-30 --optimizer sgd --pool " +
            std::to_string(pool) + " --data " + (directory / "text").string() + " --out " + out);
    INFO(outcome.output);
    REQUIRE(outcome.exit_code == 0);
    return summary_of(out).at("fraction_subnormal_at_scale_1").get<double>();
  };
  CHECK(fraction_subnormal(1) != fraction_subnormal(2));
}

TEST_CASE("programs: casts to FP8 are scaled in the sweep, so that no loss scale is needed for them") {
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  const Outcome outcome = run("underflow_sweep --quick --policy fp8 --out " + out);
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  const nlohmann::json summary = summary_of(out);
  CHECK(summary.at("relative_error_at_scale_1") <
        1.1 * summary.at("relative_error_at_best_scale").get<double>());
  CHECK(outcome.output.find("policy fp8 with cast scales by current;") != std::string::npos);
  CHECK(outcome.output.find("Without loss scaling policy fp8 flushes ") != std::string::npos);
  CHECK(outcome.output.find("are those of FP16, which policy fp8 lacks.") != std::string::npos);
}

TEST_CASE("programs: a diverged run is a result, not an error") {
  const TemporaryDirectory directory;
  const std::string out = directory / "diverged-";
  const Outcome histogram = run("gradient_histogram --quick --lr 900 --out " + out + "histogram");
  INFO(histogram.output);
  CHECK(histogram.exit_code == 0);
  const Outcome sweep = run("underflow_sweep --quick --lr 900 --out " + out + "sweep");
  INFO(sweep.output);
  CHECK(sweep.exit_code == 0);
  CHECK(sweep.output.find("are infinite or NaN in FP32 already") != std::string::npos);
  CHECK(sweep.output.find("Every scale of the sweep overflows") == std::string::npos);
  const Outcome comparison =
      run("scaler_comparison --model mlp --lr 900 --quick --out " + out + "comparison");
  INFO(comparison.output);
  CHECK(comparison.exit_code == 0);
  CHECK(comparison.output.find("-nan") == std::string::npos);
}

TEST_CASE("programs: scalers are ranked in every regime, the same for any number of threads") {
  const TemporaryDirectory directory;
  const std::string arguments =
      "scaler_comparison --quick --model mlp:hidden1=16:hidden2=8 --batch 4 --seeds 2 "
      "--scalers none,dynamic,delayed --regimes all --threads ";
  const std::string one = directory / "one", two = directory / "two";
  REQUIRE(run(arguments + "1 --out " + one).exit_code == 0);
  REQUIRE(run(arguments + "2 --out " + two).exit_code == 0);
  std::map<std::string, std::string> a = contents_of(one), b = contents_of(two);
  a.erase("manifest.json");
  b.erase("manifest.json");
  CHECK(a == b);
  for (const char* file :
       {"ranking.csv", "runs.csv", "recoveries.csv", "scales.csv", "ranking.gp", "criteria.gp"})
    CHECK(a.contains(file));
  const nlohmann::json summary = summary_of(one);
  CHECK(summary.at("poisoned.dynamic.rank") == 1);
  CHECK(summary.at("poisoned.none.diverged_runs") == 2);
  CHECK(summary.at("poisoned.none.relative_error") == "inf");
  CHECK(summary.at("calm.delayed.recovery_steps") == "nan");
}

TEST_CASE("programs: of fewer steps than moments each is looked at once") {
  const TemporaryDirectory directory;
  const std::string out = directory / "histogram";
  REQUIRE(
      run("gradient_histogram --model mlp:hidden1=4:hidden2=4 --steps 2 --pool 1 --moments 8 --out " + out)
          .exit_code == 0);
  std::vector<std::string> steps;
  std::istringstream table(contents_of(out).at("moments.csv"));
  for (std::string line; std::getline(table, line);) {
    if (line.find("weight gradients") != std::string::npos) steps.push_back(line.substr(0, line.find(',')));
  }
  CHECK(steps == std::vector<std::string>{"0", "1", "2"});
}

TEST_CASE("programs: scale_policy_order says of how many mistakes the factor is predicted") {
  const TemporaryDirectory directory;
  const Outcome outcome = run("scale_policy_order --quick --out " + (directory / "out").string());
  INFO(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.output.find("With sgd 9 of the 16 mistakes multiply the learning rate at every step") !=
        std::string::npos);
  CHECK(outcome.output.find("of 3 the mean over the steps is predicted, and is ") != std::string::npos);
  CHECK(outcome.output.find("of that; of 4 nothing is predicted.") != std::string::npos);
  // The right way that is no reference stands below the mistakes, and two seeds give no interval.
  CHECK(outcome.output.find("\ntwo_scalers_apart (right)") > outcome.output.find("\noptimizer_counts_skips"));
  const std::size_t table = outcome.output.find("\nnever_unscaled");
  CHECK(outcome.output.substr(table, outcome.output.find("\n* predicted") - table).find('[') ==
        std::string::npos);
}

TEST_CASE("programs: scale_policy_order counts no factor that it has not measured") {
  const TemporaryDirectory directory;
  const auto verdict = [&](const std::string& arguments) {
    return run("scale_policy_order --quick --seeds 1 --detector-steps 1 " + arguments + " --out " +
               (directory / "out").string())
        .output;
  };
  CHECK(verdict("--scale-log2 60 --steps 6").find("no mistake's factor was measured") != std::string::npos);
  const std::string unclipped = verdict("--clip-norm 1e6 --steps 8");
  CHECK(unclipped.find(", within ") != std::string::npos);
  CHECK(unclipped.find(", within 0.9 ") == std::string::npos);
}

TEST_CASE("programs: the sweep's figure tells points that were measured from lines that were predicted") {
  const TemporaryDirectory directory;
  const std::string out = directory / "out";
  REQUIRE(run("underflow_sweep --quick --out " + out).exit_code == 0);
  const std::string script = contents_of(out).at("sweep.gp");
  for (const char* key : {"points: measured", "lines: predicted"})
    CHECK(script.find(key) != std::string::npos);
}

TEST_CASE("programs: accumulation says where sums of ones stop") {
  const TemporaryDirectory directory;
  const std::string out = directory / "accumulation";
  REQUIRE(run("accumulation --quick --lengths-log2 6 --vectors 1 --out " + out).exit_code == 0);
  const std::string ones = contents_of(out).at("stagnation.csv");
  for (const char* line :
       {"fp16_fma,16,1,stagnates,2048,2048\n", "fp16_nearest_away,16,1,stagnates,4096,3072\n",
        "hopper_fp16,16,16,stagnates,32768,32768\n", "fp16_pairwise,16,1,overflows,32768,65536\n"})
    CHECK(ones.find(line) != std::string::npos);
}

TEST_CASE("programs: master_weights finds the octave in which FP16 begins to swallow updates") {
  const TemporaryDirectory directory;
  const std::string out = directory / "master_weights";
  REQUIRE(run("master_weights --quick --seeds 1 --out " + out).exit_code == 0);
  const nlohmann::json summary = summary_of(out);
  CHECK(summary.at("fp16.swallowed_below_2^p") == 0);
  CHECK(summary.at("fp16.swallowed_above_2^(p+1)") == 1);
}

TEST_CASE("programs: formats states the limits of the standards, and block scales keep small rows") {
  const TemporaryDirectory directory;
  const std::string out = directory / "formats";
  REQUIRE(run("formats --quick --out " + out).exit_code == 0);
  std::map<std::string, std::string> files = contents_of(out);
  // IEEE 754-2019, OFP8 1.0 and MX 1.0; digits by C's definitions of FLT_DIG and FLT_DECIMAL_DIG.
  for (const char* line :
       {"binary64,64,11,53,1.7976931348623157e+308,2.2250738585072014e-308,5e-324,2.220446049250313e-16,"
        "1.1102230246251565e-16,15,17,2098,18437736874454810623,\"infinities, NaNs\"\n",
        "binary16,16,5,11,65504,6.103515625e-05,5.960464477539063e-08,0.0009765625,0.00048828125,3,5,"
        "39.9993,63487",
        "e4m3,8,4,4,448,0.015625,0.001953125,0.125,0.0625,0,3,17.8074,253,NaN\n",
        "e2m1,4,2,2,6,1,0.5,0.5,0.25,0,2,3.585,15,none\n", "e8m0,8,8,1,1.7014118346046923e+38,"}) {
    INFO(line);
    CHECK(files.at("formats.csv").find(std::string("\n") + line) != std::string::npos);
  }
  std::istringstream lines(files.at("spread.csv"));
  std::map<std::string, double> row_errors;  // by "format,spread"
  std::string line;
  std::getline(lines, line);
  CHECK(line ==
        "format,scaling,block_size,bits_per_value,spread_octaves,relative_error,row_relative_error,"
        "fraction_flushed,fraction_saturated");
  while (std::getline(lines, line)) {
    const std::vector<std::string> cells = test::cells_of(line);
    REQUIRE(cells.size() == 9);
    row_errors[cells[0] + "," + cells[4]] = std::stod(cells[6]);
  }
  // Rounding alone costs an e4m3 number at most 2^-4 of it, saturating by the floor rule 2^-3.
  CHECK(row_errors.at("e4m3,0") <= 0x1p-4);
  CHECK(row_errors.at("e4m3,8") > 4 * 0x1p-4);
  for (int spread = 0; spread <= 8; ++spread)
    CHECK(row_errors.at("mxfp8_e4m3," + std::to_string(spread)) <= 0x1p-3);
}

TEST_CASE("programs: report makes one page of the runs and names a folder that is none") {
  const TemporaryDirectory directory;
  const std::string out = directory / "run", page = directory / "report.html";
  REQUIRE(run("gradient_histogram --quick --out " + out).exit_code == 0);
  const Outcome report = run("report --out " + page + " " + out + "/");
  CHECK(report.exit_code == 0);
  CHECK(report.output.starts_with("run: "));
  CHECK(report.output.find(page) != std::string::npos);
  CHECK(fs::file_size(page) > 1000);
  const std::string site = directory / "site" / "index.html";
  CHECK(run("report --site --out " + site + " " + out).exit_code == 0);
  CHECK(fs::exists(directory / "site" / "run.html"));
  const Outcome wrong = run("report --out " + page + " " + (directory / "nothing").string());
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.output.find("nothing") != std::string::npos);
}

TEST_CASE("programs: what an all-reduce that rounds costs is told in pairs with one in FP32") {
  const TemporaryDirectory directory;
  const std::string ranks = "--ranks 4 --allreduce direct:division=after --out ";
  const Outcome scalers =
      run("scaler_comparison --quick --model mlp:hidden1=16:hidden2=8 --batch 8 --seeds 3 " + ranks +
          std::string(directory / "out"));
  INFO(scalers.output);
  REQUIRE(scalers.exit_code == 0);
  const std::string sentence = "What an all-reduce in fp16 over 4 ranks costs: ";
  CHECK(scalers.output.find(sentence) != std::string::npos);
  nlohmann::json summary = summary_of(directory / "out");
  CHECK(summary.contains("dynamic.all_reduce_excess"));
  CHECK(!summary.contains("fp32.all_reduce_excess"));
  CHECK(content_of(directory / "out" / "runs.csv").find("dynamic+fp32_allreduce,amp,") != std::string::npos);

  const Outcome recipes =
      run("opt_levels --quick --recipes O2 --seeds 3 " + ranks + std::string(directory / "recipes"));
  INFO(recipes.output);
  REQUIRE(recipes.exit_code == 0);
  CHECK(recipes.output.find(sentence) != std::string::npos);
  CHECK(summary_of(directory / "recipes").contains("O2.all_reduce_final_accuracy"));

  // In FP32 there is none.
  const Outcome without =
      run("scaler_comparison --quick " + small + " --ranks 4 --out " + std::string(directory / "out"));
  REQUIRE(without.exit_code == 0);
  CHECK(without.output.find(sentence) == std::string::npos);
}
