/// The experiment binaries as their users run them: files, keys, bytes and exit codes.

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/file_contents.h"
#include "tests/temporary_directory.h"
#include "tests/text.h"

namespace {

namespace fs = std::filesystem;
using test::content_of;
using test::contents_of;
using test::TemporaryDirectory;

struct Outcome {
  int exit_code;
  std::string output;  ///< stdout and stderr together
};

Outcome run(const std::string& arguments, const std::string& wrapper = "") {
  const std::string command =
      wrapper + std::string(HALFLAB_BINARY_DIRECTORY) + "/" + arguments + " 2>&1 < /dev/null";
  Outcome outcome{};
  FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> buffer;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.output.append(buffer.data(), n);
  outcome.exit_code = WEXITSTATUS(::pclose(pipe));
  return outcome;
}

struct Program {
  std::string name;
  std::vector<std::string> summary_keys;
  std::vector<std::string> files;
  std::string arguments = "";  ///< besides --quick
};

const std::vector<Program>& programs() {
  static const std::vector<Program> rows = [] {
    std::vector<std::string> comparison_keys;
    for (const char* strategy : {"fp32", "none", "static", "dynamic", "adaptive"}) {
      for (const char* key : {"final_loss", "steps", "skipped_steps", "final_scale_log2", "aborted_runs",
                              "mean_fraction_flushed", "mean_relative_error", "final_loss_std",
                              "final_loss_lower", "final_loss_upper"}) {
        comparison_keys.push_back(std::string(strategy) + "." + key);
      }
    }
    return std::vector<Program>{
        {"gradient_histogram",
         {"values_total", "fraction_zero", "fraction_below_smallest_subnormal", "fraction_flushed_at_scale_1",
          "fraction_subnormal_at_scale_1", "fraction_overflow_at_scale_1", "max_abs_log2",
          "recommended_scale_log2", "fraction_flushed_at_recommended_scale"},
         {"histogram.csv", "layers.csv", "weights.csv", "operations.csv", "moments.csv", "over_training.csv",
          "gradient_histogram.gp", "layers.gp", "weights.gp", "over_training.gp"}},
        {"gradient_histogram",
         {"activation_gradients.fraction_zero"},
         {"paper3.csv", "published.csv", "paper3.gp"},
         " --figure paper3 --steps 5 --batch 4"},
        {"gradient_histogram",
         {"paper2b_fraction_below_2^-24"},
         {"paper2b.csv", "paper2b.gp"},
         " --figure paper2b --model lstm:width=16 --steps 5"},
        {"underflow_sweep",
         {"best_scale_log2", "flushed_at_scale_1", "flushed_at_best_scale", "lost_upstream_at_scale_1"},
         {"sweep.csv", "layers.csv", "sweep.gp"}},
        {"scaler_comparison", comparison_keys, {"steps.csv", "layers.csv", "loss.gp", "scale.gp"}},
        {"formats",
         {"binary16.range_octaves", "tensor.e2m1.row_relative_error", "block.mxfp4.fraction_flushed",
          "block.nvfp4.fraction_saturated"},
         {"formats.csv", "octaves.csv", "values.csv", "spread.csv", "block_size.csv", "values.gp",
          "spread.gp", "block_size.gp"}},
        {"allreduce_precision",
         {"workers", "scale_log2", "network.relative_error.ring.fp16",
          "normal.relative_error.direct.fp32_accumulation", "network.overflow_from_workers.after",
          "network.usable_scale_highest_log2.before"},
         {"allreduce.csv", "scales.csv", "windows.csv", "error.gp", "division.gp", "windows.gp"}},
        {"master_weights",
         {"fp16.swallowed_below_2^p", "fp16.swallowed_above_2^(p+1)", "fp16.worst_accuracy_loss",
          "own.updates_flushed_in_fp16", "adam_1e-5.masters.test_loss", "adam_1e-5.fp16.progress",
          "adam_cosine.fp16_stochastic.cosine", "own_hundredth.bf16.swallowed_late"},
         {"conditions.csv", "swallowed_by_ratio.csv", "steps.csv", "swallowed_by_ratio.gp", "loss.gp",
          "steps.gp"}},
        {"memory_anatomy",
         {"parameters", "memory_bytes.O2", "activation_bytes.selective", "product_flop_forward",
          "time_share.element_wise", "largest_batch.O1.full", "bytes_per_parameter.amp.adamw",
          "published.bert_large.step_mib", "allocated_peaks"},
         {"parameters.csv", "memory.csv", "activations.csv", "operators.csv", "batches.csv", "published.csv",
          "allocated.csv", "memory.gp", "roofline.gp"}},
        {"op_precision",
         {"operations", "measured", "needs_fp32", "fp32_list", "torch.stricter", "apex.laxer",
          "linear.placement"},
         {"operations.csv", "lists.csv", "operations.gp"},
         " --models mlp,cnn,autoencoder"},
        {"opt_levels",
         {"budget_bytes", "O1.final_accuracy", "O1.final_accuracy_difference", "O3.held_bytes",
          "mxfp4.mean_relative_error", "nvfp4.equal_bytes_batch",
          "fp8_unscaled.equal_bytes_final_accuracy_difference"},
         {"policies.csv", "operations.csv", "batches.csv", "runs.csv", "steps.csv", "skips.csv", "costs.gp",
          "operations.gp", "batches.gp"}},
        {"scale_policy_order",
         {"never_unscaled.sgd.measured_factor", "clip_before_unscale.adam.final_loss_difference",
          "two_scalers_summed.sgd.measured_loss_ratio", "optimizer_counts_skips.adam.predicted_factor"},
         {"recipes.csv", "runs.csv", "steps.csv", "rate.gp", "loss.gp"}},
        {"accumulation",
         {"fp32.positive.relative_error", "hopper_fp32.signed.backward_error", "fp16_fma.ones",
          "fp16_to_odd.ones", "l1.fp16_pairwise.sum_then_divide.fails_from_batch_log2",
          "mse.fp32_sequential.divide_first.fails"},
         {"dots.csv", "sums.csv", "stagnation.csv", "loss_reduction.csv", "orders.gp", "tensor_cores.gp",
          "loss_reduction.gp"}},
    };
  }();
  return rows;
}

/// The names that `--list` prints.
std::vector<std::string> listed(const std::string& family) {
  std::istringstream lines(run("scaler_comparison --list " + family).output);
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) names.push_back(line.substr(0, line.find(' ')));
  REQUIRE(!names.empty());
  return names;
}

nlohmann::json summary_of(const fs::path& directory) {
  return nlohmann::json::parse(content_of(directory / "summary.json"));
}

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

/// A comparison of a tenth of a second.
const std::string small = "--model mlp:hidden1=32:hidden2=32 --steps 3 --batch 8 --seeds 1";

}  // namespace

TEST_CASE("programs: --quick writes every promised file and key, the same bytes with 1 and 2 threads") {
  for (const Program& program : programs()) {
    const std::string command = program.name + program.arguments + " --quick";
    INFO(command);
    const TemporaryDirectory directory;
    const std::string one = directory / "one", two = directory / "two";
    const Outcome first = run(command + " --threads 1 --out " + one);
    INFO(first.output);
    REQUIRE(first.exit_code == 0);
    const Outcome second = run(command + " --threads 2 --out " + two);
    REQUIRE(second.exit_code == 0);
    CHECK(first.output == second.output);

    std::map<std::string, std::string> files = contents_of(one), others = contents_of(two);
    const nlohmann::json summary = nlohmann::json::parse(files.at("summary.json"));
    for (const std::string& key : program.summary_keys) {
      INFO(key);
      CHECK(summary.contains(key));
    }
    for (const std::string& file : program.files) {
      INFO(file);
      CHECK(files.contains(file));
    }
    const nlohmann::json manifest = nlohmann::json::parse(files.at("manifest.json"));
    CHECK(manifest.at("gpu").is_null());
    CHECK(manifest.at("options").at("quick") == true);
    files.erase("manifest.json");
    others.erase("manifest.json");
    CHECK(files == others);
  }
}

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
    "programs: every scaler of every kind runs; two of the same with other options stand side by side") {
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
}

TEST_CASE("programs: a diverged run is a result, not an error") {
  const TemporaryDirectory directory;
  const std::string out = directory / "diverged";
  const Outcome histogram = run("gradient_histogram --quick --lr 900 --out " + out);
  INFO(histogram.output);
  CHECK(histogram.exit_code == 0);
  const Outcome sweep = run("underflow_sweep --quick --lr 900 --out " + out);
  INFO(sweep.output);
  CHECK(sweep.exit_code == 0);
  CHECK(sweep.output.find("are infinite or NaN in FP32 already") != std::string::npos);
  CHECK(sweep.output.find("Every scale of the sweep overflows") == std::string::npos);
  const Outcome comparison = run("scaler_comparison --model mlp --lr 900 --quick --out " + out);
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

TEST_CASE("programs: a broken folder of images is named in one line, and nothing is written") {
  const TemporaryDirectory directory;
  const auto write = [&](const std::string& name, std::string bytes) {
    std::ofstream(directory / name, std::ios::binary) << bytes;
  };
  const std::string images = std::string("\0\0\10\3\0\0\0\2\0\0\0\4\0\0\0\4", 16) + std::string(32, '\x7F');
  const std::string labels = std::string("\0\0\10\1\0\0\0\2\0\1", 10);
  write("t10k-images-idx3-ubyte", images);
  write("t10k-labels-idx1-ubyte", labels);
  write("train-labels-idx1-ubyte", labels);
  write("train-images-idx3-ubyte", images);
  const std::string arguments = "gradient_histogram --quick --data " + (directory / "").string() + " --out " +
                                (directory / "out").string();
  const Outcome good = run(arguments);
  INFO(good.output);
  CHECK(good.exit_code == 0);
  fs::remove_all(directory / "out");
  const auto refuses = [&](const std::string& must_name) {
    const Outcome outcome = run(arguments);
    INFO(outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.output.find(must_name) != std::string::npos);
    CHECK(std::count(outcome.output.begin(), outcome.output.end(), '\n') == 1);
    CHECK(!fs::exists(directory / "out"));
  };
  write("train-images-idx3-ubyte", images.substr(0, 40));
  refuses("train-images-idx3-ubyte");
  write("train-images-idx3-ubyte", "not an IDX file at all");
  refuses("train-images-idx3-ubyte");
  write("train-images-idx3-ubyte", images);
  write("train-labels-idx1-ubyte", std::string("\0\0\10\1\0\0\0\3\0\1\0", 11));
  refuses("train-labels-idx1-ubyte");
  fs::remove(directory / "train-labels-idx1-ubyte");
  refuses("train-labels-idx1-ubyte");
}

TEST_CASE("programs: --help shows an example and the summary keys, --list every family") {
  for (const Program& program : programs()) {
    const Outcome help = run(program.name + " --help");
    CHECK(help.exit_code == 0);
    CHECK(help.output.find("--out") != std::string::npos);
    CHECK(help.output.find("Example:\n  " + program.name + " --") != std::string::npos);
    for (const char* family : {"formats", "policies", "ops", "models", "scalers", "optimizers", "schedules",
                               "accumulations", "data"}) {
      const Outcome list = run(program.name + " --list " + family);
      INFO(program.name, " ", family);
      CHECK(list.exit_code == 0);
      CHECK(!list.output.empty());
    }
  }
}

TEST_CASE("programs: bad usage is one line, exit code 2, and nothing is written") {
  const TemporaryDirectory directory;
  std::ofstream(directory / "file") << "not a directory";
  const struct {
    std::string arguments;
    std::string must_name;
  } wrong[] = {
      {"gradient_histogram --model resnet --out {}", "resnet"},
      {"gradient_histogram --stpes 3 --out {}", "--steps"},
      {"gradient_histogram --steps -3 --out {}", "--steps"},
      {"gradient_histogram --lr 0 --out {}", "--lr"},
      {"gradient_histogram --data /no/such/folder --out {}", "/no/such/folder"},
      {"underflow_sweep --policy fp13 --out {}", "--policy: 'fp13' is not allowed; did you mean 'fp16'?"},
      {"underflow_sweep --policy O5 --out {}", "did you mean 'O0'?"},
      {"training --policy O2:foo=1 --out {}", "policy 'O2': unknown override 'foo'; allowed: "},
      {"underflow_sweep --model mlpp --out {}", "did you mean 'mlp'?"},
      {"underflow_sweep --optimizer adm --out {}", "did you mean 'adam'?"},
      {"underflow_sweep --schedule cosin --out {}", "did you mean 'cosine'?"},
      {"underflow_sweep --data builtn --out {}", "did you mean 'builtin'?"},
      {"training --accumulation fp16_fmaa --out {}", "did you mean 'fp16_fma'?"},
      {"training --steps 20 --schedule cosine:warmup_steps=1000000 --out {}", "longer than the run"},
      {"training --model mlp --data " + (directory / "file").string() + " --out {}",
       "is a file, which is read as text; allowed for images: builtin, digits, a directory with IDX files; "
       "models by data: images mlp, autoencoder, cnn; text transformer, lstm; scenes ssd"},
      {"training --list scalers:dinamic --out {}", "did you mean 'dynamic'?"},
      {"underflow_sweep --policy amp:gradient_rounding=upwards --out {}", "gradient_rounding"},
      {"underflow_sweep --max-scale-log2 -1 --out {}", "--max-scale-log2"},
      {"report --site --notebooks /nowhere --out {} run",
       "--notebooks: '/nowhere' must be a directory with HTML"},
      {"report --notebooks /nowhere --out {} run", "give --site too"},
      {"op_precision --reductions fp8 --out {}", "--reductions: 'fp8' is not allowed; allowed: fp32, fp16"},
      {"op_precision --models mlp,cnnn --out {}", "did you mean 'cnn'?"},
      {"opt_levels --recipes O4 --out {}", "--recipes: unknown recipe 'O4'; did you mean 'O0'?"},
      {"scale_policy_order --micro-batches 5 --out {}", "5 do not divide a batch of 32"},
      {"master_weights --optimizer nope --out {}", "--optimizer"},
      {"scaler_comparison --scalers none,dinamic --out {}", "did you mean 'dynamic'?"},
      {"scaler_comparison --scalers '' --out {}", "--scalers"},
      {"scaler_comparison --scalers static:scale=0 --out {}", "scale = 0"},
      {"scaler_comparison --scalers static:scale=-8 --out {}", "scale = -8"},
      {"scaler_comparison --scalers static:scale=many --out {}", "many"},
      {"scaler_comparison --scalers static:scale --out {}", "scale"},
      {"scaler_comparison --scalers dynamic:growht_factor=3 --out {}", "growth_factor"},
      {"scaler_comparison --scalers none,none --out {}", "--scalers"},
      {"scaler_comparison --policy O1:master_weights=true --out {}", "master_weights"},
      {"scaler_comparison --model mlp:hidden1=0 --out {}", "hidden1 = 0"},
      {"scaler_comparison --model mlp --data text --out {}", "'text' holds text"},
      {"scaler_comparison --model transformer:width=10 --out {}", "multiples of heads"},
      {"scaler_comparison --optimizer sgd:momentum=1 --out {}", "momentum = 1"},
      {"scaler_comparison --schedule cosine:warmup=3 --out {}", "warmup_steps"},
      {"scaler_comparison --context 1 --out {}", "--context"},
      {"scaler_comparison --growth-interval 0 --out {}", "--growth-interval"},
      {"scaler_comparison --quick --out " + (directory / "file").string(), "file"},
      {"scaler_comparison --regimes spikey --out {}", "did you mean 'spiky'?"},
      {"scaler_comparison --regimes spiky,spiky --out {}", "twice"},
      {"scaler_comparison --regimes spiky --steps 10 --out {}", "--disturb-every"},
      {"scaler_comparison --outlier-factor 1 --out {}", "--outlier-factor"},
      {"formats --rows 0 --out {}", "--rows"},
      {"formats --spread 9 --out {}", "--spread"},
      {"accumulation --lengths-log2 4 --out {}", "--lengths-log2"},
      {"accumulation --vectors 0 --out {}", "--vectors"},
      {"allreduce_precision --max-workers-log2 14 --out {}", "--max-workers-log2"},
      {"allreduce_precision --pool 1 --out {}", "--pool"},
      {"memory_anatomy --network bert_larg --out {}", "bert_large"},
      {"memory_anatomy --network none.toml --out {}", "none.toml"},
      {"memory_anatomy --network bert_large:heads=3 --out {}", "heads"},
      {"memory_anatomy --card x --out {}", "v100"},
      {"memory_anatomy --optimizer adamw:foo=1 --out {}", "foo"},
      {"memory_anatomy --context-mib 20000 --out {}", "20000"},
  };
  for (const auto& [arguments, must_name] : wrong) {
    const std::string out = directory / "never";
    std::string line = arguments;
    if (const std::size_t at = line.find("{}"); at != std::string::npos) line.replace(at, 2, out);
    const Outcome outcome = run(line, "timeout 60 ");  // training takes longer
    INFO(line, "\n", outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.output.find(must_name) != std::string::npos);
    CHECK(std::count(outcome.output.begin(), outcome.output.end(), '\n') == 1);
    CHECK(!fs::exists(out));
  }
}

TEST_CASE("programs: a folder of MNIST files runs as the built-in data does") {
  const char* data = std::getenv("HALFLAB_DATA_DIR");
  if (data == nullptr) {
    MESSAGE("skipped: HALFLAB_DATA_DIR is not set");
    return;
  }
  const TemporaryDirectory directory;
  const Outcome outcome = run("gradient_histogram --quick --data " + std::string(data) + "/mnist-10k --out " +
                              (directory / "mnist").string());
  INFO(outcome.output);
  CHECK(outcome.exit_code == 0);
}
